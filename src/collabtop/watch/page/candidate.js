// The panel of one candidate: its estimate over time, its pulls by agent, and its single pulls with their notes.

import { $, fill, fillFacts, getJson, noteCell, setText, showDialog } from "./parts.js";
import { VERDICT_TEXT, clock, dateTime, mean, money, range, whole } from "./format.js";
import { drawBand } from "./drawing.js";
import { placesOf } from "./standing.js";

const ROWS = 60;

export function openCandidate(base, row, head, isLive) {
  let page = 0, ask = () => {};
  setText("candidate-name", row.label);
  const load = async () => {
    const detail = await getJson(`${base}/candidates/${row.arm}?page=${page}`);
    draw(row, head, detail, page);
    $("newer").disabled = page === 0; $("older").disabled = !(page + 1 < detail.pages);
    setText("page-text", detail.pages > 1 ? `page ${whole(page + 1)} of ${whole(detail.pages)}` : "");
    return detail;
  };
  $("newer").onclick = () => { page = Math.max(0, page - 1); ask(); };
  $("older").onclick = () => { page += 1; ask(); };
  ask = showDialog("candidate", load, isLive);
}

function draw(row, head, detail, page) {
  fillFacts("candidate-facts", [
    ["verdict", VERDICT_TEXT[row.verdict] + (row.round === null || row.verdict === "open" ? "" : ` in round ${whole(row.round)}`)],
    ["place", placesOf(row)], ["mean", mean(row.mean)], ["95% interval", range(row.low, row.high)],
    ["pulls", whole(detail.pulls ?? row.pulls)], ["cost", money(detail.spent ?? row.spent)],
    ["failed attempts", detail.attempts_failed ? `${whole(detail.attempts_failed)}, ${whole(detail.retries)} of them tried again` : null],
    ["failed for good", detail.failed ? whole(detail.failed) : null], ["last error", detail.last_error],
  ]);
  const points = detail.points || [];
  $("candidate-chart").hidden = points.length < 2;
  if (points.length >= 2) drawBand($("candidate-chart"), points, "pulls");
  fill("candidate-points", points.slice(-ROWS).reverse().map(([pulls, value, low, high, at]) => ({ cells: [whole(pulls), mean(value), range(low, high), dateTime(at)] })));
  fill("candidate-agents", (detail.agents || []).map(([agent, pulls]) => ({ cells: [head.sites.length ? `${agent}, ${head.sites[agent]}` : String(agent), whole(pulls)] })));
  const examples = detail.examples || [];
  $("candidate-examples-box").hidden = !examples.length;
  setText("examples-hint", `${whole(examples.length)} examples, the worst rewards first.`);
  fill("candidate-examples", examples.map(([example, pulls, reward]) => ({ cells: [example, whole(pulls), mean(reward)] })));
  const rows = detail.rows || [];
  setText("pulls-hint", detail.error || hint(detail));
  fill("candidate-pulls", rows.map((pull) => ({
    cells: [pull.example ?? "–", pull.reward === null ? "failed" : mean(pull.reward), money(pull.cost), noteCell(pull.note), String(pull.agent), clock(pull.at)],
  })));
}

function hint(detail) {
  if (detail.complete === false) return "Reading the log.";
  if (!detail.listed) return detail.pulls ? "The log holds sums of rewards, not single ones." : "There are no pulls yet.";
  const kept = detail.listed < detail.pulls ? ` The latest ${whole(detail.listed)} of ${whole(detail.pulls)} are listed.` : "";
  return `What each pull returned.${kept}`;
}
