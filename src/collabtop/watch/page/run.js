// One run: keeps the state that the server sends, and draws what changed in the next frame.

import { $, announce, listen, setText, tabs } from "./parts.js";
import { Candidates } from "./candidates.js";
import { dateTime, setDecimals, whole } from "./format.js";
import { drawAgents, drawHealth, tickAgents, unreachable } from "./health.js";
import { drawAnswer, drawTiles, drawTime } from "./answer.js";
import { drawCommunication } from "./communication.js";
import { openCandidate } from "./candidate.js";
import { openComparison } from "./two.js";
import { signOf } from "./standing.js";

const PATCHED = ["arms", "rounds", "agents"]; // sections of columns: the server sends only the rows that changed
const SECONDS_BETWEEN_ROUNDS = 10; // between announcements of rounds, which can be faster than speech
const STATUS = { waiting: "waiting", reading: "reading the log", running: "running", stopped: "stopped", finished: "finished", unreadable: "unreadable" };
const ALL = ["status", "head", "progress", "money", "health", "communication", "comparison", "rounds", "arms", "agents", "answer"];

let state = {}, skew = 0, due = false, changed = new Set(), view = "results", base = "", candidates = null;

export function showRun(name) {
  $("run").hidden = false;
  document.title = `${name} · collabtop`;
  base = `/api/runs/${encodeURIComponent(name)}`;
  setText("name", name);
  $("csv").href = `${base}/table.csv`; $("json").href = `${base}/result.json`;
  candidates = new Candidates({ open: openOne, compare: (...arms) => openComparison(base, arms.map(rowOf), signOf(state.head), isLive) });
  candidates.onSource = () => drawLater("answer");
  tabs("run", (current) => { view = current; drawLater(...ALL); });
  const resized = new ResizeObserver(() => drawLater(...ALL)); // also where tables next to a chart make it higher
  document.querySelectorAll("#run canvas").forEach((canvas) => resized.observe(canvas));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawLater(...ALL));
  setInterval(tick, 1000);
  listen(`${base}/events`, receive);
}

const isLive = () => !["finished", "unreadable"].includes(state.status.status);
const rowOf = (arm) => candidates.all.find((row) => row.arm === arm);
const openOne = (arm) => openCandidate(base, rowOf(arm), state.head, isLive);
const clockNow = () => Date.now() / 1000 + skew;

// -- updates: the sections that changed; in the long ones, the rows that changed

function receive(update) {
  const statusBefore = state.status && state.status.status, roundBefore = state.progress && state.progress.round, unreachableBefore = unreachable(state);
  if (update.all) {
    skew = update.all.clock - Date.now() / 1000;
    state = {}; update = update.all;
  }
  for (const [name, part] of Object.entries(update)) {
    if (PATCHED.includes(name)) patch(name, part);
    else state[name] = part;
    changed.add(name);
  }
  drawLater();
  announceChanges(statusBefore, roundBefore, unreachableBefore);
}

function patch(name, part) {
  if (part.at === null) { state[name] = part.columns; return; }
  const columns = state[name];
  for (const [key, values] of Object.entries(part.columns)) part.at.forEach((row, index) => { columns[key][row] = values[index]; });
}

// For screen readers: a new status, agents that come or go, a new round; never single numbers.
function announceChanges(statusBefore, roundBefore, unreachableBefore) {
  const { status, progress } = state, missing = unreachable(state);
  if (status && statusBefore !== undefined && status.status !== statusBefore) announce(`Run status: ${STATUS[status.status]}.`);
  else if (unreachableBefore !== undefined && missing !== unreachableBefore) announce(missing ? `Agents: ${missing}.` : "All agents are connected.");
  else if (progress && progress.now && roundBefore && progress.round !== roundBefore) announce(`Round ${progress.round - 1}: ${whole(progress.now.live)} candidates open.`, SECONDS_BETWEEN_ROUNDS);
}

function drawLater(...names) {
  names.forEach((name) => changed.add(name));
  if (!due) { due = true; requestAnimationFrame(draw); }
}

function draw() {
  due = false;
  const now = changed; changed = new Set();
  if (!state.status) return;
  if (state.head) setDecimals(state.head.decimals);
  drawHead();
  if (!state.head) return;
  const has = (...names) => names.some((name) => now.has(name));
  const isComplete = state.arms && state.answer; // not while a long log is being read
  if (has("arms", "head", "status", "answer") && isComplete && view === "results") candidates.update(state);
  if (view === "results") {
    if (has("progress", "money")) drawTiles(state);
    if (has("progress", "money", "health")) drawHealth(state);
    if (has("agents", "status")) drawAgents(state, clockNow());
    if (has("answer", "arms", "status") && isComplete) drawAnswer(state, candidates.all, openOne);
  } else if (has("progress", "communication", "comparison", "rounds", "head")) drawCommunication(state);
  tick();
}

function drawHead() {
  const { status, head, progress } = state;
  $("status").textContent = STATUS[status.status]; $("status").className = `pill ${status.status}`;
  const stopped = status.status === "stopped" ? "The run stopped without an answer. This is its last logged state; collabtop resume continues from it." : null;
  const notice = status.error || (progress && progress.error && `Rounds and verdicts cannot be shown: ${progress.error}.`) || stopped;
  $("notice").hidden = !notice; setText("notice", notice || "");
  $("downloads").hidden = !head;
  if (!head) return;
  setText("name", head.name); document.title = `${head.name} · collabtop`;
  const limit = head.confidence ? `confidence ${+(head.confidence * 100).toFixed(4)}%` : `horizon ${whole(head.horizon)}`;
  const agents = head.agents === 1 ? "1 agent" : `${whole(head.agents)} agents`;
  const started = progress.started === null ? "" : `, started ${dateTime(progress.started)}`;
  setText("what", `The best ${whole(head.m)} of ${whole(head.n)} by ${head.algorithm}, ${agents}, ${limit}, seed ${head.seed}${started}`);
  setText("about", `${head.arms}; ${head.algorithm}: ${head.why}.`);
}

function tick() {
  if (!state.progress || !state.status) return;
  drawTime(state, clockNow());
  if (state.status.status === "running") tickAgents(state, clockNow());
}
