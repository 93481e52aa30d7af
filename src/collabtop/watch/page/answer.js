// The answer: the best m now, how sure that is, and what it has cost; the tiles below it.

import { $, clamped, fill, make, setText } from "./parts.js";
import { dateTime, duration, mean, money, range, whole } from "./format.js";
import { placesOf } from "./standing.js";

const FEW = 8; // candidates of the answer that are shown before the rest is asked for
const EVIDENCE = new Map([[undefined, "–"], [null, "unknown"], [true, "thin"], [false, ""]]);
let showsAll = false;

export function drawAnswer(state, rows, open) {
  const { answer, head, status } = state;
  const top = rows.slice(0, head.m), isFinal = answer.complete, hasData = top.some((row) => row.mean !== null);
  $("answer").hidden = !isFinal && !hasData;
  if ($("answer").hidden) return;
  setText("answer-title", isFinal ? "Answer" : status.status === "stopped" ? "Answer when the run stopped" : "Answer so far");
  setText("answer-text", `${head.m === 1 ? "The best candidate" : `The best ${whole(head.m)} candidates`}${isFinal ? "" : " now"}. ${sureness(state, rows)}`);
  drawWarnings(answer.warnings);
  const shown = showsAll ? top : top.slice(0, FEW);
  fill("answer-table", shown.map((row) => {
    const button = make("button", "label-button", clamped(row.label));
    button.addEventListener("click", () => open(row.arm));
    return { cells: [placesOf(row), button, mean(row.mean), range(row.low, row.high), whole(row.pulls), EVIDENCE.get(row.thin)], header: 1 };
  }));
  const more = $("answer-more");
  more.hidden = top.length <= FEW;
  more.textContent = showsAll ? `Show ${whole(FEW)} only` : `Show all ${whole(top.length)}`;
  more.onclick = () => { showsAll = !showsAll; drawAnswer(state, rows, open); };
}

// How far the answer can be relied on, in one or two sentences.
export function sureness(state, rows) {
  const { answer, head } = state;
  if (answer.sure === true) return `It is correct with probability at least ${head.confidence}.`;
  const limit = answer.complete && answer.sure === false ? "The run reached its limit before it had the requested confidence. " : "";
  const gap = answer.border;
  if (!gap) return limit + (rows[head.m] ? "There are too few rewards to compare it with the next candidate." : "These are all candidates.");
  const place = (arm) => whole(rows.find((row) => row.arm === arm).place);
  const difference = `place ${place(gap.inside)} is ahead of place ${place(gap.outside)} by ${mean(gap.difference)}${gap.half === null ? "" : ` ± ${mean(gap.half)} (95%)`}`;
  if (gap.difference > gap.half) return `${limit}It is separated from the rest: ${difference}.`;
  return `${limit}It is not separated from the rest${answer.complete ? "" : " yet"}: ${difference}.`;
}

function drawWarnings(lines) {
  $("warnings").hidden = !lines.length;
  $("warnings").replaceChildren(...lines.map((line) => make("li", "", line)));
}

export function drawTiles(state) {
  const { progress, money: cost } = state;
  setText("live", progress.now ? whole(progress.now.live) : "–");
  const inside = progress.now && progress.now.inside ? `, ${whole(progress.now.inside)} inside agents` : "";
  setText("settled", progress.now ? `${whole(progress.now.accepted)} accepted, ${whole(progress.now.rejected)} rejected${inside}` : "");
  setText("pulls", whole(progress.pulls));
  setText("pulls-of", `of at most ${whole(progress.max_pulls)}${progress.failed ? `, ${whole(progress.failed)} failed` : ""}`);
  $("money-tile").hidden = !cost;
  if (cost) {
    setText("spent", money(cost.spent));
    setText("spent-of", cost.budget === null ? "" : `of ${money(cost.budget)}, ${money(Math.max(0, cost.budget - cost.spent))} left`);
  }
}

// The clock: elapsed time, and when the run will have made all its pulls.
export function drawTime(state, now) {
  const { progress, status } = state, running = status.status === "running";
  const end = running ? now : progress.latest;
  setText("elapsed", progress.started === null ? "–" : duration(end - progress.started));
  const left = running && progress.seconds_left !== null;
  setText("left", left ? `at most ${duration(progress.seconds_left)} left, until ${dateTime(now + progress.seconds_left)}` : progress.latest === null || running ? "" : `until ${dateTime(progress.latest)}`);
}
