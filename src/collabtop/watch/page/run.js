// One run: takes in what the server tells, and shows it at the next frame.

import { CANDIDATES, colours, drawCandidates, drawLines, drawRounds, rankAt } from "./drawing.js";
import { fill, listen, say, setText } from "./parts.js";
import { VERDICTS, duration, interval, mean, times, whole } from "./words.js";

const LEADERS = 12, AGENTS = 200, ROUNDS = 200;
const PATCHED = ["arms", "rounds", "agents"]; // sections of columns: only the rows that changed are told
const GONE = ["lost", "away"];
const SECONDS_BETWEEN_ROUNDS = 10; // said aloud: rounds can be quicker than anybody speaks
const STATUS = { waiting: "waiting", reading: "reading its log", running: "running", stopped: "stopped before the end", finished: "finished", unreadable: "cannot be read" };
const $ = (id) => document.getElementById(id);

let state = {}, skew = 0, showsSeen = true, chosen = null, points = [], shownAgents = [], due = false, changed = new Set();

export function showRun(name) {
  $("run").hidden = false;
  document.title = `${name} · collabtop`;
  const base = `/api/runs/${encodeURIComponent(name)}`;
  setText("name", name);
  $("csv").href = `${base}/table.csv`; $("json").href = `${base}/result.json`;
  $("show-seen").addEventListener("click", () => choose(true));
  $("show-known").addEventListener("click", () => choose(false));
  const canvas = $("candidates");
  canvas.addEventListener("keydown", moveByKey);
  canvas.addEventListener("pointermove", moveByPointer);
  canvas.addEventListener("pointerdown", moveByPointer);
  addEventListener("resize", () => later("arms", "rounds", "cost"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => later("arms", "rounds", "cost"));
  setInterval(tick, 1000);
  listen(`${base}/events`, take);
}

// -- taking in: the sections that changed; of the long ones, the rows that changed

function take(told) {
  const before = state.status && state.status.status, roundBefore = state.progress && state.progress.round, goneBefore = gone();
  if (told.all) {
    skew = told.all.clock - Date.now() / 1000;
    state = {}; told = told.all;
  }
  for (const [name, part] of Object.entries(told)) {
    if (PATCHED.includes(name)) patch(name, part);
    else state[name] = part;
    changed.add(name);
  }
  later();
  announce(before, roundBefore, goneBefore);
}

function patch(name, part) {
  if (part.at === null) { state[name] = part.columns; return; }
  const columns = state[name];
  for (const [key, values] of Object.entries(part.columns)) part.at.forEach((row, place) => { columns[key][row] = values[place]; });
}

// Agents that are lost or away, in words.
function gone() {
  return state.agents ? GONE.map((name) => [name, state.agents.state.filter((it) => it === name).length]).filter(([, many]) => many).map(([name, many]) => `${whole(many)} ${name}`).join(", ") : undefined;
}

// Said aloud by screen readers: an end, agents that come or go, a new round; never single numbers.
function announce(before, roundBefore, goneBefore) {
  const { status, progress } = state;
  if (status && before !== undefined && status.status !== before) say(`The run is ${STATUS[status.status]}.`);
  else if (goneBefore !== undefined && gone() !== goneBefore) say(gone() ? `Agents: ${gone()}.` : "All agents are there.");
  else if (progress && progress.now && roundBefore && progress.round !== roundBefore) say(`Round ${progress.round - 1}: ${whole(progress.now.live)} candidates open.`, SECONDS_BETWEEN_ROUNDS);
}

function later(...names) {
  names.forEach((name) => changed.add(name));
  if (!due) { due = true; requestAnimationFrame(draw); }
}

function draw() {
  due = false;
  const now = changed; changed = new Set();
  if (!state.status) return;
  drawHead();
  if (!state.head) return;
  if (now.has("progress") || now.has("cost") || now.has("beside") || now.has("rounds")) { drawTiles(); drawCost(); }
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
  const stopped = status.status === "stopped" ? "The run stopped before it had an answer. This is its last state; collabtop resume goes on from it." : null;
  const trouble = status.trouble || (progress && progress.trouble && `Rounds and verdicts cannot be shown: ${progress.trouble}.`) || stopped;
  $("trouble").hidden = !trouble; setText("trouble", trouble || "");
  $("downloads").hidden = !head;
  if (!head) return;
  const limit = head.confidence ? `until ${+(head.confidence * 100).toFixed(4)}% sure` : `horizon ${whole(head.horizon)}`;
  setText("what", `The best ${whole(head.m)} of ${whole(head.n)} by ${head.algorithm}, ${whole(head.agents)} agents, ${limit}, seed ${head.seed}`);
  setText("about", `${head.arms}; ${head.algorithm}: ${head.why}.`);
}

function rivalNow() {
  const rival = state.beside && state.beside.rival;
  if (!rival || !rival.time.length) return null;
  // What it had said by the time step that this run is at; a round's words are said when it ends.
  const at = state.status.status === "finished" ? rival.time.length : rival.time.filter((time) => time <= state.progress.time).length;
  const upto = (column) => (at ? column[at - 1] : 0);
  return { words: upto(rival.words), bits: upto(rival.bits), trips: upto(rival.round_trips), name: rival.name };
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
  setText("pulls-of", `of at most ${whole(progress.most)}${progress.failed ? `, ${whole(progress.failed)} failed` : ""}`);
  setText("words", whole(cost.words)); setText("bits", whole(cost.bits)); setText("trips", whole(cost.round_trips));
  const rival = rivalNow();
  const beside = (value) => (rival ? `${rival.name}: ${whole(value)}` : "");
  setText("words-beside", beside(rival && rival.words)); setText("bits-beside", beside(rival && rival.bits)); setText("trips-beside", beside(rival && rival.trips));
}

function drawCost() {
  const { head, progress, cost, beside, rounds } = state;
  const lines = [], colour = colours();
  const rival = beside.rival && beside.rival.time.length ? beside.rival : null;
  if (rival) lines.push({ name: rival.name, colour: colour.rival, points: rival.time.map((time, r) => [time, rival.words[r]]) });
  let time = 0, words = 0;
  const mine = rounds.live.map((_, r) => { time += rounds.time[r]; words += rounds.words[r]; return [time, words]; });
  if (!mine.length && cost.words) mine.push([progress.time, cost.words]);
  lines.push({ name: head.algorithm, colour: colour.open, points: mine, strong: true });
  const width = head.confidence ? Math.max(progress.time, 1) : head.horizon;
  const order = beside.order;
  drawLines($("words-chart"), lines.map((line) => ({ ...line, points: line.points.filter((point) => point[0] <= width) })), { value: order.words, name: "the paper's order" }, width, "time steps");
  const now = rivalNow(), rows = [["this run", whole(cost.words), whole(cost.bits), whole(cost.round_trips)]];
  if (now && state.status.status !== "finished") rows.push([`${now.name} by the same time step`, whole(now.words), whole(now.bits), whole(now.trips)]);
  if (rival) rows.push([`${rival.name} in the end`, whole(rival.words.at(-1)), whole(rival.bits.at(-1)), whole(rival.round_trips.at(-1))]);
  rows.push([`the paper's order, ${order.formula}`, whole(order.words), "–", "–"]);
  fill("beside", rows.map((cells) => ({ cells, numbers: [1, 2, 3], header: 0 })));
  const ratio = rival ? times(rival.words.at(-1), cost.words, `times as many words as this run ${state.status.status === "finished" ? "did" : "has so far"}`) : "";
  setText("words-hint", rival
    ? `${rival.name} is simulated at this size${ratio ? ` and says ${ratio}` : ""}. The paper proves its order without a constant.`
    : beside.rival ? `No cost of ${beside.rival.name} beside it: ${beside.rival.trouble}.` : "The cost of another algorithm is being simulated.");
  fill("kinds", cost.kinds.map(([kind, direction, ...counts]) => ({ cells: [kind, direction === "up" ? "to the coordinator" : "to agents", ...counts.map(whole)], numbers: [2, 3, 4], header: 0 })));
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
  const arm = chosen !== null && points[chosen] ? points[chosen].arm : null;
  points = [];
  for (let i = 0; i < head.n; i += 1) {
    const value = seen ? arms.seen_mean[i] : arms.mean[i];
    if (value === null || value === undefined) continue;
    const pulls = seen ? arms.seen_pulls[i] : arms.pulls[i];
    const [low, high] = pulls > 0 ? interval(value, pulls) : [value, value];
    points.push({ arm: i, mean: value, pulls: pulls > 0 ? pulls : null, low, high, verdict: VERDICTS[arms.verdict[i]], round: arms.round[i] });
  }
  points.sort((a, b) => b.mean - a.mean || a.arm - b.arm);
  if (arm !== null) { const at = points.findIndex((point) => point.arm === arm); chosen = at < 0 ? null : at; }
  drawCandidates($("candidates"), points, head.m, chosen);
  drawReadout(); drawLeaders();
}

function leaders() {
  // Accepted ones first, then what is open, then the rest: an arm that was rejected does not lead any more.
  const order = { accepted: 0, open: 1, inside: 2, rejected: 3 };
  const head = Math.max(LEADERS, Math.min(state.head.m + 4, 60));
  return points.slice().sort((a, b) => order[a.verdict] - order[b.verdict] || b.mean - a.mean || a.arm - b.arm).slice(0, head);
}

function rangeBar(point, low, high) {
  const box = document.createElement("span"); box.className = "range";
  const bar = document.createElement("span"); bar.className = "bar"; bar.ariaHidden = "true";
  const inner = document.createElement("i"); inner.className = point.verdict;
  const width = high - low || 1;
  inner.style.left = `${((point.low - low) / width) * 100}%`; inner.style.width = `${Math.max(0.8, ((point.high - point.low) / width) * 100)}%`;
  bar.append(inner); box.append(`${mean(point.low)} to ${mean(point.high)}`, bar);
  return box;
}

function drawLeaders() {
  const some = leaders();
  const low = Math.min(...some.map((point) => point.low)), high = Math.max(...some.map((point) => point.high));
  fill("leaders", some.map((point, place) => ({
    cells: [String(place + 1), label(point.arm), mean(point.mean), point.pulls ? rangeBar(point, low, high) : "–", whole(point.pulls),
      point.verdict === "inside" ? "inside an agent" : point.verdict + (point.round >= 0 && point.round !== null && point.verdict !== "open" ? `, round ${point.round}` : "")],
    numbers: [0, 2, 4], header: 1, mark: { 5: `verdict-${point.verdict}` }, row: place + 1 === state.head.m ? "border-after" : "",
  })));
  setText("leaders-title", state.status.status === "finished" ? "In front at the end" : "In front now");
}

function readout() {
  const point = chosen === null ? null : points[chosen];
  return point
    ? `${label(point.arm)}: place ${whole(chosen + 1)}, mean ${mean(point.mean)}, 95% interval ${mean(point.low)} to ${mean(point.high)}, ${whole(point.pulls)} pulls, ${point.verdict === "inside" ? "settled inside an agent" : point.verdict}.`
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
  fill("rounds-table", rounds.live.slice(first).map((live, place) => {
    const r = first + place;
    return { cells: [whole(r), rounds.phase[r], whole(live), whole(rounds.accepted[r]), whole(rounds.rejected[r]), whole(rounds.inside[r]), whole(rounds.time[r]), whole(rounds.words[r])], numbers: [0, 2, 3, 4, 5, 6, 7], header: 0 };
  }));
}

function drawAgents() {
  const { agents, head } = state;
  if (!agents) return;
  const rank = { lost: 0, away: 1, late: 2, working: 3, idle: 4 };
  const order = agents.state.map((_, agent) => agent).sort((a, b) => rank[agents.state[a]] - rank[agents.state[b]] || a - b);
  const count = (name) => agents.state.filter((it) => it === name).length;
  const said = ["lost", "away", "late", "working", "idle"].filter(count).map((name) => `${whole(count(name))} ${name}`);
  setText("agents-text", said.join(", ") + (order.length > AGENTS ? `; the first ${AGENTS} are shown` : ""));
  shownAgents = order.slice(0, AGENTS);
  fill("agents", shownAgents.map((agent) => {
    const bar = document.createElement("span"); bar.className = "bar"; bar.ariaHidden = "true";
    const inner = document.createElement("i"); inner.style.width = `${Math.min(100, (agents.pulls[agent] / head.horizon) * 100)}%`; bar.append(inner);
    return { cells: [head.sites.length ? `${agent}, ${head.sites[agent]}` : String(agent), agents.state[agent], whole(agents.pulls[agent]), bar, heard(agent)], numbers: [0, 2], header: 0, mark: { 1: agents.state[agent] } };
  }));
}

function heard(agent) {
  const at = state.agents.heard[agent];
  if (at === null) return "–";
  const ago = Date.now() / 1000 + skew - at;
  return ago < 2 ? "just now" : `${duration(ago)} ago`;
}

function drawAnswer() {
  const { answer, arms, head } = state;
  $("answer").hidden = !answer;
  if (!answer) return;
  const named = answer.top.slice(0, 10).map(label).join(", ") + (answer.top.length > 10 ? ` and ${answer.top.length - 10} more` : "");
  const sure = answer.sure === true ? ` It is right with probability ${head.confidence}.` : answer.sure === false ? " The run met its limit before it was sure." : "";
  setText("answer-text", `${head.m === 1 ? "The best is" : `The best ${head.m} are`} ${named}.${sure}`);
  $("warnings").hidden = !answer.warnings.length;
  $("warnings").replaceChildren(...answer.warnings.map((line) => { const item = document.createElement("li"); item.textContent = line; return item; }));
  fill("answer-table", answer.top.slice(0, 100).map((arm, place) => {
    const pulls = arms.pulls[arm], value = arms.mean[arm];
    const [low, high] = pulls > 0 ? interval(value, pulls) : [null, null];
    return { cells: [String(place + 1), label(arm), mean(value), pulls > 0 ? `${mean(low)} to ${mean(high)}` : "–", pulls > 0 ? whole(pulls) : "–"], numbers: [0, 2, 4], header: 1 };
  }));
}

// -- the clock, and moving over the candidates

function tick() {
  const { progress, status } = state;
  if (!progress || !status) return;
  const running = status.status === "running";
  const end = running ? Date.now() / 1000 + skew : progress.last;
  setText("used", progress.began === null ? "–" : duration(end - progress.began));
  setText("left", running && progress.left !== null ? `at most ${duration(progress.left)} left` : "");
  if (running) document.querySelectorAll("#agents tbody tr").forEach((row, place) => { row.lastChild.textContent = heard(shownAgents[place]); });
}

function choose(seen) { showsSeen = seen; later("arms"); }

function moveTo(at) {
  chosen = Math.min(points.length - 1, Math.max(0, at));
  drawCandidates($("candidates"), points, state.head.m, chosen); drawReadout();
  // Only a move is said aloud, not what changes while one stays.
  $("candidates").ariaValueNow = String(chosen + 1); $("candidates").ariaValueText = readout();
}

function moveByKey(event) {
  const from = chosen === null ? -1 : chosen;
  const to = { ArrowRight: from + 1, ArrowUp: from + 1, ArrowLeft: from - 1, ArrowDown: from - 1, PageDown: from + 10, PageUp: from - 10, Home: 0, End: points.length - 1 }[event.key];
  if (to !== undefined && points.length) { event.preventDefault(); moveTo(to); }
}

function moveByPointer(event) {
  if (!points.length) return;
  const box = event.currentTarget.getBoundingClientRect();
  const place = (event.clientX - box.left - CANDIDATES.left) / (box.width - CANDIDATES.left - CANDIDATES.right);
  if (place >= 0 && place <= 1) moveTo(rankAt(place, points.length));
}
