// The second view of a run: what its agents and the coordinator sent, round by round.

import { $, fill, setText } from "./parts.js";
import { colours, drawLines, drawRounds } from "./drawing.js";
import { ratio, whole } from "./format.js";

const ROUNDS = 200;

// The cost of the baseline by the current time step, or null; the words of a round count when it ends.
function baselineNow(state) {
  const baseline = state.comparison && state.comparison.baseline;
  if (!baseline || !baseline.time.length) return null;
  const rounds = state.status.status === "finished" ? baseline.time.length : baseline.time.filter((time) => time <= state.progress.time).length;
  const upTo = (column) => (rounds ? column[rounds - 1] : 0);
  return { words: upTo(baseline.words), bits: upTo(baseline.bits), trips: upTo(baseline.round_trips), name: baseline.name };
}

export function drawCommunication(state) {
  const { head, progress, communication: sent } = state;
  setText("time", whole(progress.time));
  $("time-bar").value = Math.min(1, progress.time / head.horizon);
  $("time-bar").title = `${whole(progress.time)} of ${whole(head.horizon)}`;
  setText("words", whole(sent.words)); setText("bits", whole(sent.bits)); setText("trips", whole(sent.round_trips));
  const baseline = baselineNow(state);
  for (const name of ["words", "bits", "trips"]) setText(`${name}-baseline`, baseline ? `${baseline.name}: ${whole(baseline[name])}` : "");
  drawWords(state);
  drawRoundSection(state);
  fill("kinds", sent.kinds.map(([kind, direction, ...counts]) => ({ cells: [kind, direction === "up" ? "to the coordinator" : "to agents", ...counts.map(whole)] })));
}

function drawWords(state) {
  const { head, progress, communication: sent, comparison, rounds, status } = state;
  const lines = [], colour = colours();
  const baseline = comparison.baseline && comparison.baseline.time.length ? comparison.baseline : null;
  if (baseline) lines.push({ name: baseline.name, colour: colour.baseline, points: baseline.time.map((time, r) => [time, baseline.words[r]]) });
  let time = 0, words = 0;
  const own = rounds.live.map((_, r) => { time += rounds.time[r]; words += rounds.words[r]; return [time, words]; });
  if (!own.length && sent.words) own.push([progress.time, sent.words]);
  lines.push({ name: `this run (${head.algorithm})`, colour: colour.open, points: own, strong: true });
  const width = head.confidence ? Math.max(progress.time, 1) : head.horizon;
  const order = comparison.order;
  drawLines($("words-chart"), lines.map((line) => ({ ...line, points: line.points.filter((point) => point[0] <= width) })), { value: order.words, name: "order of the paper's bound" }, width, "time steps");
  const now = baselineNow(state), rows = [["this run", whole(sent.words), whole(sent.bits), whole(sent.round_trips)]];
  if (now && status.status !== "finished") rows.push([`${now.name} by the same time step`, whole(now.words), whole(now.bits), whole(now.trips)]);
  if (baseline) rows.push([`${baseline.name} at the end`, whole(baseline.words.at(-1)), whole(baseline.bits.at(-1)), whole(baseline.round_trips.at(-1))]);
  rows.push([`order of the paper's bound, ${order.formula}`, whole(order.words), "–", "–"]);
  fill("comparison", rows.map((cells) => ({ cells })));
  setText("words-hint", hint(state, baseline, sent.words));
}

function hint(state, baseline, words) {
  if (!state.comparison.baseline) return "Simulating the cost of a baseline algorithm.";
  if (!baseline) return `${state.comparison.baseline.name} cannot be simulated for comparison: ${state.comparison.baseline.error}.`;
  const total = baseline.words.at(-1);
  const needs = words && total ? `${ratio(total, words)} times as many words as this run${state.status.status === "finished" ? "" : " so far"}` : `${whole(total)} words`;
  return `${baseline.name}, simulated for the same task, needs ${needs}. The paper states its bound without a constant.`;
}

function drawRoundSection({ rounds, head }) {
  drawRounds($("rounds"), rounds, head.n);
  const first = Math.max(0, rounds.live.length - ROUNDS);
  fill("rounds-table", rounds.live.slice(first).map((live, index) => {
    const r = first + index;
    return { cells: [whole(r), rounds.phase[r], ...[live, rounds.accepted[r], rounds.rejected[r], rounds.inside[r], rounds.time[r], rounds.words[r]].map(whole)] };
  }));
}
