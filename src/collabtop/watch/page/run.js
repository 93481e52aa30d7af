// One run: keeps the state that the server sends, and draws it in the next frame.

import { CANDIDATES, colours, drawCandidates, drawLines, drawRounds, rankAt } from "./drawing.js";
import { announce, fill, listen, setText } from "./parts.js";
import { VERDICTS, duration, interval, mean, ratio, whole } from "./format.js";

const LEADERS = 12, AGENTS = 200, ROUNDS = 200;
const PATCHED = ["arms", "rounds", "agents"]; // sections of columns: the server sends only the rows that changed
const AGENT_STATES = ["lost", "away", "late", "working", "idle"]; // in the order of the table
const UNREACHABLE = ["lost", "away"];
const SECONDS_BETWEEN_ROUNDS = 10; // between announcements of rounds, which can be faster than speech
const STATUS = { waiting: "waiting", reading: "reading the log", running: "running", stopped: "stopped", finished: "finished", unreadable: "unreadable" };
const $ = (id) => document.getElementById(id);

let state = {}, skew = 0, showsSeen = true, selected = null, points = [], shownAgents = [], due = false, changed = new Set();

export function showRun(name) {
  $("run").hidden = false;
  document.title = `${name} · collabtop`;
  const base = `/api/runs/${encodeURIComponent(name)}`;
  setText("name", name);
  $("csv").href = `${base}/table.csv`; $("json").href = `${base}/result.json`;
  $("show-seen").addEventListener("click", () => showEstimates(true));
  $("show-known").addEventListener("click", () => showEstimates(false));
  const canvas = $("candidates");
  canvas.addEventListener("keydown", moveByKey);
  canvas.addEventListener("pointermove", moveByPointer);
  canvas.addEventListener("pointerdown", moveByPointer);
  addEventListener("resize", () => drawLater("arms", "rounds", "cost"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawLater("arms", "rounds", "cost"));
  setInterval(tick, 1000);
  listen(`${base}/events`, receive);
}

// -- updates: the sections that changed; in the long ones, the rows that changed

function receive(update) {
  const statusBefore = state.status && state.status.status, roundBefore = state.progress && state.progress.round, unreachableBefore = unreachable();
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

// The numbers of agents in these states, as text.
function agentCounts(names) {
  const count = (name) => state.agents.state.filter((other) => other === name).length;
  return names.filter(count).map((name) => `${whole(count(name))} ${name}`).join(", ");
}

function unreachable() {
  return state.agents ? agentCounts(UNREACHABLE) : undefined;
}

// For screen readers: a new status, agents that come or go, a new round; never single numbers.
function announceChanges(statusBefore, roundBefore, unreachableBefore) {
  const { status, progress } = state;
  if (status && statusBefore !== undefined && status.status !== statusBefore) announce(`Run status: ${STATUS[status.status]}.`);
  else if (unreachableBefore !== undefined && unreachable() !== unreachableBefore) announce(unreachable() ? `Agents: ${unreachable()}.` : "All agents are connected.");
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
  drawHead();
  if (!state.head) return;
  if (now.has("progress") || now.has("cost") || now.has("comparison") || now.has("rounds")) { drawTiles(); drawCost(); }
  if (now.has("arms") || now.has("head")) { drawArms(); }
  if (now.has("rounds") || now.has("head")) drawRoundSection();
  if (now.has("agents") || now.has("status")) drawAgents();
  if (now.has("answer") || now.has("arms")) drawAnswer();
  tick();
}

// -- sections

function drawHead() {
  const { status, head, progress } = state;
  $("status").textContent = STATUS[status.status]; $("status").className = `pill ${status.status}`;
  const stopped = status.status === "stopped" ? "The run stopped without an answer. This is its last logged state; collabtop resume continues from it." : null;
  const notice = status.error || (progress && progress.error && `Rounds and verdicts cannot be shown: ${progress.error}.`) || stopped;
  $("notice").hidden = !notice; setText("notice", notice || "");
  $("downloads").hidden = !head;
  if (!head) return;
  const limit = head.confidence ? `confidence ${+(head.confidence * 100).toFixed(4)}%` : `horizon ${whole(head.horizon)}`;
  setText("what", `The best ${whole(head.m)} of ${whole(head.n)} by ${head.algorithm}, ${whole(head.agents)} agents, ${limit}, seed ${head.seed}`);
  setText("about", `${head.arms}; ${head.algorithm}: ${head.why}.`);
}

// The cost of the baseline by the current time step, or null; the words of a round count when it ends.
function baselineNow() {
  const baseline = state.comparison && state.comparison.baseline;
  if (!baseline || !baseline.time.length) return null;
  const rounds = state.status.status === "finished" ? baseline.time.length : baseline.time.filter((time) => time <= state.progress.time).length;
  const upTo = (column) => (rounds ? column[rounds - 1] : 0);
  return { words: upTo(baseline.words), bits: upTo(baseline.bits), trips: upTo(baseline.round_trips), name: baseline.name };
}

function drawTiles() {
  const { head, progress, cost } = state;
  setText("live", progress.now ? whole(progress.now.live) : "–");
  const inside = progress.now && progress.now.inside ? `, ${whole(progress.now.inside)} inside agents` : "";
  setText("settled", progress.now ? `${whole(progress.now.accepted)} accepted, ${whole(progress.now.rejected)} rejected${inside}` : "");
  setText("time", whole(progress.time));
  $("time-bar").value = Math.min(1, progress.time / head.horizon);
  $("time-bar").title = `${whole(progress.time)} of ${whole(head.horizon)}`;
  setText("pulls", whole(progress.pulls));
  setText("pulls-of", `of at most ${whole(progress.max_pulls)}${progress.failed ? `, ${whole(progress.failed)} failed` : ""}`);
  setText("words", whole(cost.words)); setText("bits", whole(cost.bits)); setText("trips", whole(cost.round_trips));
  const baseline = baselineNow();
  for (const name of ["words", "bits", "trips"]) setText(`${name}-baseline`, baseline ? `${baseline.name}: ${whole(baseline[name])}` : "");
}

function drawCost() {
  const { head, progress, cost, comparison, rounds, status } = state;
  const lines = [], colour = colours();
  const baseline = comparison.baseline && comparison.baseline.time.length ? comparison.baseline : null;
  if (baseline) lines.push({ name: baseline.name, colour: colour.baseline, points: baseline.time.map((time, r) => [time, baseline.words[r]]) });
  let time = 0, words = 0;
  const own = rounds.live.map((_, r) => { time += rounds.time[r]; words += rounds.words[r]; return [time, words]; });
  if (!own.length && cost.words) own.push([progress.time, cost.words]);
  lines.push({ name: `this run (${head.algorithm})`, colour: colour.open, points: own, strong: true });
  const width = head.confidence ? Math.max(progress.time, 1) : head.horizon;
  const order = comparison.order;
  drawLines($("words-chart"), lines.map((line) => ({ ...line, points: line.points.filter((point) => point[0] <= width) })), { value: order.words, name: "order of the paper's bound" }, width, "time steps");
  const now = baselineNow(), rows = [["this run", whole(cost.words), whole(cost.bits), whole(cost.round_trips)]];
  if (now && status.status !== "finished") rows.push([`${now.name} by the same time step`, whole(now.words), whole(now.bits), whole(now.trips)]);
  if (baseline) rows.push([`${baseline.name} at the end`, whole(baseline.words.at(-1)), whole(baseline.bits.at(-1)), whole(baseline.round_trips.at(-1))]);
  rows.push([`order of the paper's bound, ${order.formula}`, whole(order.words), "–", "–"]);
  fill("comparison", rows.map((cells) => ({ cells, numbers: [1, 2, 3], header: 0 })));
  setText("words-hint", communicationHint(baseline, cost.words));
  fill("kinds", cost.kinds.map(([kind, direction, ...counts]) => ({ cells: [kind, direction === "up" ? "to the coordinator" : "to agents", ...counts.map(whole)], numbers: [2, 3, 4], header: 0 })));
}

function communicationHint(baseline, words) {
  if (!state.comparison.baseline) return "Simulating the cost of a baseline algorithm.";
  if (!baseline) return `${state.comparison.baseline.name} cannot be simulated for comparison: ${state.comparison.baseline.error}.`;
  const total = baseline.words.at(-1);
  const needs = words && total ? `${ratio(total, words)} times as many words as this run${state.status.status === "finished" ? "" : " so far"}` : `${whole(total)} words`;
  return `${baseline.name}, simulated for the same task, needs ${needs}. The paper states its bound without a constant.`;
}

function label(arm) {
  return state.head.labels ? state.head.labels[arm] : `candidate ${arm}`;
}

function drawArms() {
  const { arms, head } = state;
  if (!arms) return;
  const seenAny = arms.seen_pulls.some((pulls) => pulls > 0);
  $("show-seen").disabled = !seenAny;
  const seen = showsSeen && seenAny;
  $("show-seen").setAttribute("aria-pressed", seen); $("show-known").setAttribute("aria-pressed", !seen);
  const arm = selected !== null && points[selected] ? points[selected].arm : null;
  points = [];
  for (let i = 0; i < head.n; i += 1) {
    const value = seen ? arms.seen_mean[i] : arms.mean[i];
    if (value === null || value === undefined) continue;
    const pulls = seen ? arms.seen_pulls[i] : arms.pulls[i];
    const [low, high] = pulls > 0 ? interval(value, pulls) : [value, value];
    points.push({ arm: i, mean: value, pulls: pulls > 0 ? pulls : null, low, high, verdict: VERDICTS[arms.verdict[i]], round: arms.round[i] });
  }
  points.sort((a, b) => b.mean - a.mean || a.arm - b.arm);
  if (arm !== null) { const index = points.findIndex((point) => point.arm === arm); selected = index < 0 ? null : index; }
  drawCandidates($("candidates"), points, head.m, selected);
  drawReadout(); drawLeaders();
}

function leaders() {
  // First the accepted ones, then the open ones: a rejected arm may have a high mean, but does not lead any more.
  const order = { accepted: 0, open: 1, inside: 2, rejected: 3 };
  const count = Math.max(LEADERS, Math.min(state.head.m + 4, 60));
  return points.slice().sort((a, b) => order[a.verdict] - order[b.verdict] || b.mean - a.mean || a.arm - b.arm).slice(0, count);
}

function rangeBar(point, low, high) {
  const cell = document.createElement("span"); cell.className = "range";
  const bar = document.createElement("span"); bar.className = "bar"; bar.ariaHidden = "true";
  const inner = document.createElement("i"); inner.className = point.verdict;
  const width = high - low || 1;
  inner.style.left = `${((point.low - low) / width) * 100}%`; inner.style.width = `${Math.max(0.8, ((point.high - point.low) / width) * 100)}%`;
  bar.append(inner); cell.append(`${mean(point.low)} to ${mean(point.high)}`, bar);
  return cell;
}

function drawLeaders() {
  const shown = leaders();
  const low = Math.min(...shown.map((point) => point.low)), high = Math.max(...shown.map((point) => point.high));
  fill("leaders", shown.map((point, index) => ({
    cells: [String(index + 1), label(point.arm), mean(point.mean), point.pulls ? rangeBar(point, low, high) : "–", whole(point.pulls),
      point.verdict === "inside" ? "inside an agent" : point.verdict + (point.round >= 0 && point.round !== null && point.verdict !== "open" ? `, round ${point.round}` : "")],
    numbers: [0, 2, 4], header: 1, classNames: { 5: `verdict-${point.verdict}` }, className: index + 1 === state.head.m ? "border-after" : "",
  })));
  setText("leaders-title", state.status.status === "finished" ? "Final leaders" : "Current leaders");
}

function readout() {
  const point = selected === null ? null : points[selected];
  return point
    ? `${label(point.arm)}: rank ${whole(selected + 1)}, mean ${mean(point.mean)}, 95% interval ${mean(point.low)} to ${mean(point.high)}, ${whole(point.pulls)} pulls, ${point.verdict === "inside" ? "settled inside an agent" : point.verdict}.`
    : "";
}

function drawReadout() {
  setText("readout", readout());
  $("candidates").ariaValueMax = String(Math.max(1, points.length));
}

function drawRoundSection() {
  const { rounds, head } = state;
  drawRounds($("rounds"), rounds, head.n);
  const first = Math.max(0, rounds.live.length - ROUNDS);
  fill("rounds-table", rounds.live.slice(first).map((live, index) => {
    const r = first + index;
    return { cells: [whole(r), rounds.phase[r], whole(live), whole(rounds.accepted[r]), whole(rounds.rejected[r]), whole(rounds.inside[r]), whole(rounds.time[r]), whole(rounds.words[r])], numbers: [0, 2, 3, 4, 5, 6, 7], header: 0 };
  }));
}

function drawAgents() {
  const { agents, head } = state;
  if (!agents) return;
  const rank = (agent) => AGENT_STATES.indexOf(agents.state[agent]);
  const order = agents.state.map((_, agent) => agent).sort((a, b) => rank(a) - rank(b) || a - b);
  setText("agents-text", agentCounts(AGENT_STATES) + (order.length > AGENTS ? `; the first ${AGENTS} are shown` : ""));
  shownAgents = order.slice(0, AGENTS);
  fill("agents", shownAgents.map((agent) => {
    const bar = document.createElement("span"); bar.className = "bar"; bar.ariaHidden = "true";
    const inner = document.createElement("i"); inner.style.width = `${Math.min(100, (agents.pulls[agent] / head.horizon) * 100)}%`; bar.append(inner);
    return { cells: [head.sites.length ? `${agent}, ${head.sites[agent]}` : String(agent), agents.state[agent], whole(agents.pulls[agent]), bar, heard(agent)], numbers: [0, 2], header: 0, classNames: { 1: agents.state[agent] } };
  }));
}

function heard(agent) {
  const time = state.agents.heard[agent];
  if (time === null) return "–";
  const seconds = Date.now() / 1000 + skew - time;
  return seconds < 2 ? "just now" : `${duration(seconds)} ago`;
}

function drawAnswer() {
  const { answer, arms, head } = state;
  $("answer").hidden = !answer;
  if (!answer) return;
  const named = answer.top.slice(0, 10).map(label).join(", ") + (answer.top.length > 10 ? ` and ${answer.top.length - 10} more` : "");
  const sure = answer.sure === true ? ` It is correct with probability at least ${head.confidence}.` : answer.sure === false ? " The run reached its limit before it had the requested confidence." : "";
  setText("answer-text", `${head.m === 1 ? "The best is" : `The best ${head.m} are`} ${named}.${sure}`);
  $("warnings").hidden = !answer.warnings.length;
  $("warnings").replaceChildren(...answer.warnings.map((line) => { const item = document.createElement("li"); item.textContent = line; return item; }));
  fill("answer-table", answer.top.slice(0, 100).map((arm, index) => {
    const pulls = arms.pulls[arm], value = arms.mean[arm];
    const [low, high] = pulls > 0 ? interval(value, pulls) : [null, null];
    return { cells: [String(index + 1), label(arm), mean(value), pulls > 0 ? `${mean(low)} to ${mean(high)}` : "–", pulls > 0 ? whole(pulls) : "–"], numbers: [0, 2, 4], header: 1 };
  }));
}

// -- the clock, and moving between candidates

function tick() {
  const { progress, status } = state;
  if (!progress || !status) return;
  const running = status.status === "running";
  const end = running ? Date.now() / 1000 + skew : progress.latest;
  setText("elapsed", progress.started === null ? "–" : duration(end - progress.started));
  setText("left", running && progress.seconds_left !== null ? `at most ${duration(progress.seconds_left)} left` : "");
  if (running) document.querySelectorAll("#agents tbody tr").forEach((row, index) => { row.lastChild.textContent = heard(shownAgents[index]); });
}

function showEstimates(seen) { showsSeen = seen; drawLater("arms"); }

function moveTo(index) {
  selected = Math.min(points.length - 1, Math.max(0, index));
  drawCandidates($("candidates"), points, state.head.m, selected); drawReadout();
  // Screen readers announce a move, but not the changes of the selected candidate.
  $("candidates").ariaValueNow = String(selected + 1); $("candidates").ariaValueText = readout();
}

function moveByKey(event) {
  const from = selected === null ? -1 : selected;
  const to = { ArrowRight: from + 1, ArrowUp: from + 1, ArrowLeft: from - 1, ArrowDown: from - 1, PageDown: from + 10, PageUp: from - 10, Home: 0, End: points.length - 1 }[event.key];
  if (to !== undefined && points.length) { event.preventDefault(); moveTo(to); }
}

function moveByPointer(event) {
  if (!points.length) return;
  const box = event.currentTarget.getBoundingClientRect();
  const position = (event.clientX - box.left - CANDIDATES.left) / (box.width - CANDIDATES.left - CANDIDATES.right);
  if (position >= 0 && position <= 1) moveTo(rankAt(position, points.length));
}
