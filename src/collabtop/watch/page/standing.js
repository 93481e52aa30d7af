// The one order of candidates, for the answer, the chart and the table.

import { VERDICTS } from "./format.js";

// Larger means are better, or smaller ones: rewards are in the user's unit.
export const sign = (head) => (head.direction === "minimize" ? -1 : 1);

const STANDING = { accepted: 0, open: 1, inside: 2, rejected: 3 };
export const ORDER = "Accepted candidates first, then open ones, then those settled inside an agent, then rejected ones; within each, the best mean first.";

// All candidates as rows with their places. `source` is "known": what the coordinator knows, and where it knows
// nothing, the log; or "seen": all rewards in the log.
export function standing(state, source) {
  const { arms, head, answer } = state;
  const order = { ...STANDING };
  if (2 * head.m > head.n) order.inside = 0.5; // agents look for the worst then: what they settle alone is accepted
  const final = new Map((answer ? answer.top : []).map((arm, index) => [arm, index]));
  const rows = [];
  for (let arm = 0; arm < head.n; arm += 1) {
    const known = source === "known" && arms.mean[arm] !== null && arms.mean[arm] !== undefined;
    const pulls = known ? arms.pulls[arm] : arms.seen_pulls[arm];
    rows.push({
      arm, label: head.labels ? head.labels[arm] : `candidate ${arm}`,
      mean: known ? arms.mean[arm] : arms.seen_mean[arm], low: known ? arms.low[arm] : arms.seen_low[arm], high: known ? arms.high[arm] : arms.seen_high[arm],
      pulls: pulls > 0 ? pulls : null, fromLog: source === "known" && !known,
      verdict: VERDICTS[arms.verdict[arm]], round: arms.round[arm] >= 0 ? arms.round[arm] : null, failed: arms.failed[arm],
    });
  }
  const value = (row) => (Number.isFinite(row.mean) ? sign(head) * row.mean : -Infinity), rank = (row) => final.get(row.arm) ?? Infinity;
  rows.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)) || order[a.verdict] - order[b.verdict] || (value(a) === value(b) ? 0 : value(b) - value(a)) || a.arm - b.arm);
  rows.forEach((row, index) => { row.place = index + 1; });
  return rows;
}

const halfWidth = (row) => (row.high - row.low) / 2;

// The weakest of the first m, and the one after them that is hardest to separate from it: their difference, and half
// the width of its 95% interval; null if their means are not known.
export function border(rows, head) {
  const better = (row, other) => sign(head) * (row.mean - other.mean), m = head.m;
  const weakest = rows.slice(0, m).filter((row) => row.low !== null).reduce((least, row) => (least && better(least, row) <= 0 ? least : row), null);
  if (!weakest) return null;
  let hardest = null, least = Infinity;
  for (const row of rows.slice(m)) {
    if (row.low === null) continue;
    const half = Math.hypot(halfWidth(weakest), halfWidth(row)), clear = better(weakest, row) / Math.max(half, Number.MIN_VALUE);
    if (clear < least) { least = clear; hardest = { inside: weakest, outside: row, difference: better(weakest, row), half }; }
  }
  return hardest;
}
