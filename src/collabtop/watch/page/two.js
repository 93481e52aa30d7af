// Two candidates side by side, on the examples that both were scored on.

import { clamped, fill, getJson, noteCell, setText, showDialog } from "./parts.js";
import { mean, range, signed, whole } from "./format.js";

export function openComparison(base, rows, sign, isLive) {
  const load = async () => {
    const both = await getJson(`${base}/comparison/${rows[0].arm}/${rows[1].arm}`);
    draw(rows, both, sign);
    return both;
  };
  showDialog("two", load, isLive);
}

function draw(rows, both, sign) {
  fill("two-table", rows.map((row, index) => ({ cells: ["AB"[index], clamped(row.label), mean(row.mean), range(row.low, row.high), whole(row.pulls)], header: 1 })));
  setText("two-text", both.error || (both.complete === false ? "Reading the log." : both.paired ? pairedText(both, sign) : unpairedText(rows, sign)));
  const examples = both.separating || [];
  setText("two-hint", examples.length ? "Those with the largest difference first." : both.paired ? "There is no example on which they differ." : "Examples are known only where pulls are paired (a set of examples, or paired=True).");
  fill("two-examples", examples.map(({ example, rewards: [one, other], notes }) => ({ cells: [example, mean(one), mean(other), signed(one - other), noteCell(notes[0]), noteCell(notes[1])] })));
}

function pairedText(both, sign) {
  const counts = `On ${whole(both.common)} examples that both were scored on, A is better on ${whole(sign > 0 ? both.higher : both.lower)}, B on ${whole(sign > 0 ? both.lower : both.higher)}, and they are equal on ${whole(both.common - both.higher - both.lower)}.`;
  if (!both.difference) return `${counts} At least two are needed for an interval.`;
  const [difference, low, high] = both.difference;
  if (low === null) return `${counts} Paired difference A − B: ${signed(difference)}, the same on all of them.`;
  return `${counts} Paired difference A − B: ${signed(difference)}, ${both.exact ? "exact, because these are all examples" : `95% interval ${signed(low)} to ${signed(high)}`}. ${verdict(low, high, sign)}`;
}

// Without pairs, the two means are independent: the variances add up.
function unpairedText([one, other], sign) {
  if (one.mean === null || other.mean === null) return "One of them has no rewards yet.";
  if (one.low === null || other.low === null) return `They were not scored on the same examples. Difference of the means A − B: ${signed(one.mean - other.mean)}; an interval is not known.`;
  const difference = one.mean - other.mean, half = Math.hypot((one.high - one.low) / 2, (other.high - other.low) / 2);
  return `They were not scored on the same examples. Difference of the means A − B: ${signed(difference)}, 95% interval ${signed(difference - half)} to ${signed(difference + half)}. ${verdict(difference - half, difference + half, sign)}`;
}

function verdict(low, high, sign) {
  if (low > 0 || high < 0) return low > 0 === sign > 0 ? "A is better." : "B is better.";
  return "They are not separated.";
}
