// The one order of candidates, for the answer, the chart and the table.

import { VERDICTS, whole } from "./format.js";

const STANDING = { accepted: 0, open: 1, inside: 2, rejected: 3 };
export const ORDER = "the answer first, then open candidates, those settled inside an agent, and rejected ones; within each, the best mean first.";

// 1 if large rewards are better, -1 if small ones are.
export const signOf = (head) => (head.direction === "minimize" ? -1 : 1);

export const placesOf = (row) => row.places ?? whole(row.place);

// All candidates as rows with their places. `source` is "known": what the coordinator knows, and where it knows
// nothing, the log; or "seen": all rewards in the log.
export function standing(state, source) {
  const { arms, head, answer } = state;
  const order = { ...STANDING };
  if (2 * head.m > head.n) order.inside = 0.5; // agents look for the worst then: what they settle alone is accepted
  const final = new Map(answer.top.map((arm, index) => [arm, index])), sign = signOf(head);
  const groups = new Float64Array(head.n), values = new Float64Array(head.n); // the keys of the order
  const rows = [];
  for (let arm = 0; arm < head.n; arm += 1) {
    const known = source === "known" && arms.mean[arm] !== null && arms.mean[arm] !== undefined;
    const pulls = known ? arms.pulls[arm] : arms.seen_pulls[arm];
    rows.push({
      arm, label: head.labels ? head.labels[arm] : `candidate ${arm}`,
      mean: known ? arms.mean[arm] : arms.seen_mean[arm], low: known ? arms.low[arm] : arms.seen_low[arm], high: known ? arms.high[arm] : arms.seen_high[arm],
      pulls: pulls > 0 ? pulls : null, fromLog: source === "known" && !known,
      verdict: VERDICTS[arms.verdict[arm]], round: arms.round[arm] >= 0 ? arms.round[arm] : null, failed: arms.failed[arm], spent: arms.spent[arm],
    });
  }
  rows.forEach((row, arm) => { // places in the answer come before all groups
    groups[arm] = final.has(arm) ? final.get(arm) - head.n : order[row.verdict];
    values[arm] = row.mean === null ? Number.MAX_VALUE : -sign * row.mean;
  });
  rows.sort((a, b) => groups[a.arm] - groups[b.arm] || values[a.arm] - values[b.arm] || a.arm - b.arm);
  // Places are those that the evidence leaves open; candidates outside the answer have the order of the table.
  rows.forEach((row, index) => {
    row.place = index + 1;
    [row.places, row.thin] = answer.standings[final.get(row.arm)] || [null, undefined];
  });
  return rows;
}
