// All runs: a table, and a chart that compares their words.

import { drawLines } from "./drawing.js";
import { fill, listen, setText } from "./parts.js";
import { whole } from "./format.js";

const HUES = [215, 160, 25, 280, 345, 190, 45, 120], MAX_COMPARED = 8;
const excluded = new Set();
let runs = [];

export function showList() {
  document.getElementById("list").hidden = false;
  document.title = "Runs · collabtop";
  addEventListener("resize", drawCompare);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCompare);
  listen("/api/events", (update) => {
    if (runs.length === 0 && update.runs.length === 1 && !sessionStorage.getItem("listed")) {
      sessionStorage.setItem("listed", "yes");
      location.replace(address(update.runs[0].name)); // a single run is shown directly, but only once, so that the list stays reachable
      return;
    }
    runs = update.runs;
    draw();
  });
}

function address(name) { return `/runs/${encodeURIComponent(name)}`; }

function colourOf(index) { return `hsl(${HUES[index % HUES.length]} 65% ${matchMedia("(prefers-color-scheme: dark)").matches ? 65 : 34}%)`; }

function draw() {
  document.getElementById("list-empty").hidden = runs.length > 0;
  document.getElementById("runs-card").hidden = runs.length === 0;
  fill("runs", runs.map((run, index) => {
    const link = document.createElement("a"); link.href = address(run.name); link.textContent = run.name;
    const name = document.createElement("span");
    const tick = document.createElement("input"); tick.type = "checkbox"; tick.checked = !excluded.has(run.name) && index < MAX_COMPARED; tick.disabled = index >= MAX_COMPARED;
    tick.ariaLabel = `show ${run.name} in the chart below`;
    tick.addEventListener("change", () => { tick.checked ? excluded.delete(run.name) : excluded.add(run.name); drawCompare(); });
    name.append(tick, " ", link);
    const pill = document.createElement("span"); pill.className = `pill ${run.status}`; pill.textContent = run.status;
    const status = document.createElement("span"); status.append(pill);
    if (run.lost) { const note = document.createElement("span"); note.className = "warning"; note.textContent = `${whole(run.lost)} lost`; status.append(" ", note); }
    if (run.n === undefined) return { cells: [name, pill, run.error || "–", "–", "–", "–", "–", "–", "–"], numbers: [4, 5, 6, 7], header: 0 };
    const task = `${whole(run.m)} of ${whole(run.n)}, ${whole(run.agents)} agents, horizon ${whole(run.horizon)}`;
    return { cells: [name, status, run.algorithm, task, whole(run.pulls), whole(run.words), whole(run.bits), whole(run.round_trips), answer(run)], numbers: [4, 5, 6, 7], header: 0 };
  }));
  drawCompare();
}

// The answer, and whether other runs with the same candidates have the same answer.
function answer(run) {
  if (!run.top) return "–";
  const cell = document.createElement("span");
  cell.append(run.top.slice(0, 3).join(", ") + (run.m > 3 ? ` and ${run.m - 3} more` : ""));
  const others = runs.filter((other) => other !== run && other.answer && run.answer && other.m === run.m && other.answer.split(" ")[0] === run.answer.split(" ")[0]);
  if (others.length) {
    const same = others.filter((other) => other.answer === run.answer).length;
    const mark = document.createElement("span");
    mark.className = same === others.length ? "same-answer" : "warning";
    mark.textContent = same === others.length ? " same as all others" : ` same as ${same} of ${others.length} others`;
    cell.append(document.createElement("br"), mark);
  }
  return cell;
}

function drawCompare() {
  const shown = runs.slice(0, MAX_COMPARED).map((run, index) => [run, index]).filter(([run]) => run.points && run.points.length && !excluded.has(run.name));
  document.getElementById("compare").hidden = runs.filter((run) => run.points && run.points.length).length < 2;
  const lines = shown.map(([run, index]) => ({ colour: colourOf(index), strong: true, points: run.points.map(([pulls, words]) => [pulls / run.max_pulls, words]) }));
  drawLines(document.getElementById("compare-chart"), lines, null, 1, "%");
  document.getElementById("compare-legend").replaceChildren(...shown.map(([run, index]) => {
    const item = document.createElement("li"), key = document.createElement("span");
    key.className = "key"; key.style.background = colourOf(index);
    item.append(key, `${run.name}: ${run.algorithm}, ${whole(run.words)} words`);
    return item;
  }));
  setText("about", `${runs.length} ${runs.length === 1 ? "run" : "runs"}.`);
}
