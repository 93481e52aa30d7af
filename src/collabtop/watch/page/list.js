// All runs: a table, and their words beside each other.

import { drawLines } from "./drawing.js";
import { fill, listen, setText } from "./parts.js";
import { whole } from "./words.js";

const HUES = [215, 160, 25, 280, 345, 190, 45, 120], MOST = 8;
const left_out = new Set();
let runs = [];

export function showList() {
  document.getElementById("list").hidden = false;
  document.title = "Runs · collabtop";
  addEventListener("resize", drawCompare);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCompare);
  listen("/api/events", (told) => {
    if (runs.length === 0 && told.runs.length === 1 && !sessionStorage.getItem("listed")) {
      sessionStorage.setItem("listed", "yes");
      location.replace(address(told.runs[0].name)); // one run alone is what somebody wants to see
      return;
    }
    runs = told.runs;
    draw();
  });
}

function address(name) { return `/runs/${encodeURIComponent(name)}`; }

function hue(at) { return `hsl(${HUES[at % HUES.length]} 65% ${matchMedia("(prefers-color-scheme: dark)").matches ? 65 : 34}%)`; }

function draw() {
  document.getElementById("list-empty").hidden = runs.length > 0;
  document.getElementById("runs").hidden = runs.length === 0;
  fill("runs", runs.map((run, at) => {
    const link = document.createElement("a"); link.href = address(run.name); link.textContent = run.name;
    const name = document.createElement("span");
    const tick = document.createElement("input"); tick.type = "checkbox"; tick.checked = !left_out.has(run.name) && at < MOST; tick.disabled = at >= MOST;
    tick.ariaLabel = `show ${run.name} in the picture below`;
    tick.addEventListener("change", () => { tick.checked ? left_out.delete(run.name) : left_out.add(run.name); drawCompare(); });
    name.append(tick, " ", link);
    const pill = document.createElement("span"); pill.className = `pill ${run.status}`; pill.textContent = run.status;
    const status = document.createElement("span"); status.append(pill);
    if (run.lost) { const note = document.createElement("span"); note.className = "other"; note.textContent = `${whole(run.lost)} lost`; status.append(" ", note); }
    if (run.n === undefined) return { cells: [name, pill, run.trouble || "–", "–", "–", "–", "–", "–", "–"], numbers: [4, 5, 6, 7], header: 0 };
    const task = `${whole(run.m)} of ${whole(run.n)}, ${whole(run.agents)} agents, horizon ${whole(run.horizon)}`;
    return { cells: [name, status, run.algorithm, task, whole(run.pulls), whole(run.words), whole(run.bits), whole(run.round_trips), answer(run)], numbers: [4, 5, 6, 7], header: 0 };
  }));
  drawCompare();
}

// The answer, and whether the other runs on the same candidates came to the same one.
function answer(run) {
  if (!run.top) return "–";
  const box = document.createElement("span");
  box.append(run.top.slice(0, 3).join(", ") + (run.m > 3 ? ` and ${run.m - 3} more` : ""));
  const others = runs.filter((other) => other !== run && other.answer && run.answer && other.m === run.m && other.answer.split(" ")[0] === run.answer.split(" ")[0]);
  if (others.length) {
    const same = others.filter((other) => other.answer === run.answer).length;
    const mark = document.createElement("span");
    mark.className = same === others.length ? "same" : "other";
    mark.textContent = same === others.length ? " same as the others" : ` same as ${same} of ${others.length} others`;
    box.append(document.createElement("br"), mark);
  }
  return box;
}

function drawCompare() {
  const shown = runs.slice(0, MOST).map((run, at) => [run, at]).filter(([run]) => run.points && run.points.length && !left_out.has(run.name));
  document.getElementById("compare").hidden = runs.filter((run) => run.points && run.points.length).length < 2;
  const lines = shown.map(([run, at]) => ({ colour: hue(at), strong: true, points: run.points.map(([pulls, words]) => [pulls / run.most, words]) }));
  drawLines(document.getElementById("compare-chart"), lines, null, 1, "%");
  document.getElementById("compare-legend").replaceChildren(...shown.map(([run, at]) => {
    const item = document.createElement("li"), key = document.createElement("span");
    key.className = "key"; key.style.background = hue(at);
    item.append(key, `${run.name}: ${run.algorithm}, ${whole(run.words)} words`);
    return item;
  }));
  setText("about", `${runs.length} runs.`);
}
