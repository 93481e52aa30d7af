// A study: the error and the words of every algorithm, drawn as its runs arrive.

import { $, listen, make, observeScrolling, fill, setText } from "./parts.js";
import { drawPanel } from "./study_chart.js";
import { mean, range, whole } from "./format.js";

let study = null;

export function showStudy(name) {
  $("study").hidden = false;
  document.title = `${name} · collabtop`;
  setText("study-name", name);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  listen(`/api/studies/${encodeURIComponent(name)}/events`, (update) => { study = update; draw(); });
}

function draw() {
  if (!study) return;
  $("study-status").textContent = study.status; $("study-status").className = `pill ${study.status}`;
  $("study-notice").hidden = !study.error; setText("study-notice", study.error || "");
  setText("study-what", study.error ? "" : `${whole(study.runs)} runs at ${whole(study.points.length)} points`);
  const panels = panelsOf(study.points), box = $("study-panels");
  while (box.children.length > panels.length) box.lastElementChild.remove();
  while (box.children.length < panels.length) box.append(newPanel());
  panels.forEach((panel, index) => drawOne(box.children[index], panel));
}

// One panel for each set of arms and m, by the horizon or, where that is fixed and the agents vary, by the agents.
function panelsOf(points) {
  const groups = new Map();
  for (const point of points) {
    const key = JSON.stringify([point.arms, point.m]);
    groups.set(key, [...(groups.get(key) || []), point]);
  }
  const panels = [];
  for (const [key, members] of groups) {
    const [arms, m] = JSON.parse(key);
    const byAgents = new Map();
    for (const point of members) byAgents.set(point.agents, [...(byAgents.get(point.agents) || []), point]);
    const varied = [...byAgents].filter(([, some]) => new Set(some.map((point) => point.horizon)).size > 1);
    for (const [agents, some] of varied) panels.push({ title: `${arms}: the best ${m}, ${agents} agents`, axis: "horizon", points: some });
    const rest = members.filter((point) => !varied.some(([agents]) => agents === point.agents));
    if (rest.length) panels.push({ title: `${arms}: the best ${m}`, axis: "agents", points: rest });
  }
  return panels;
}

function newPanel() {
  const card = make("section", "card");
  const error = make("canvas"), words = make("canvas");
  error.role = words.role = "img";
  error.ariaLabel = "Share of wrong answers, with 95% intervals; the table below has the numbers";
  words.ariaLabel = "Mean number of words; the table below has the numbers";
  const details = make("details"), scroll = make("div", "scroll tall"), table = make("table");
  table.append(make("caption", "visually-hidden", "Points of the panel"), table.createTHead(), table.createTBody());
  const head = table.tHead.insertRow();
  for (const [title, isNumber] of [["algorithm", false], ["horizon", true], ["agents", true], ["runs", true], ["error", true], ["95% interval", false], ["words", true]]) {
    const cell = make("th", isNumber ? "number" : "", title); cell.scope = "col"; head.append(cell);
  }
  scroll.append(table); details.append(make("summary", "", "As a table"), scroll);
  card.append(make("h2"), make("ul", "legend"), error, words, details);
  observeScrolling(card);
  return card;
}

function drawOne(card, panel) {
  const title = card.querySelector("h2"), [error, words] = card.querySelectorAll("canvas");
  if (title.textContent !== panel.title) title.textContent = panel.title;
  const lines = linesOf(panel);
  card.querySelector(".legend").replaceChildren(...lines.map((line) => {
    const item = make("li"), key = make("span", "key"); key.style.background = line.colour; item.append(key, line.name); return item;
  }));
  drawPanel(error, lines.map((line) => ({ ...line, points: line.points.map((point) => [point[panel.axis], point.error, point.error_low, point.error_high]) })), panel.axis, "share of wrong answers");
  const measured = lines.map((line) => ({ ...line, points: line.points.filter((point) => point.words_mean !== null).map((point) => [point[panel.axis], point.words_mean]) }));
  words.hidden = measured.every((line) => !line.points.length);
  if (!words.hidden) drawPanel(words, measured, panel.axis, "words");
  const nameOf = namesIn(panel.points);
  fill(card.querySelector("table"), panel.points.map((point) => ({ cells: [nameOf(point), whole(point.horizon), whole(point.agents), whole(point.runs), mean(point.error), range(point.error_low, point.error_high), whole(point.words_mean)] })));
}

// The options are part of the name where an algorithm was run with different ones.
function namesIn(points) {
  const options = new Map();
  for (const point of points) options.set(point.algorithm, (options.get(point.algorithm) || new Set()).add(point.options));
  return (point) => point.algorithm + (options.get(point.algorithm).size > 1 ? ` ${point.options.replace(/[{}"]/g, "")}` : "");
}

const HUES = [215, 160, 25, 280, 345, 190, 45, 120];
function linesOf(panel) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, byName = new Map(), nameOf = namesIn(panel.points);
  for (const point of panel.points) byName.set(nameOf(point), [...(byName.get(nameOf(point)) || []), point]);
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, points], index) => ({
    name, colour: `hsl(${HUES[index % HUES.length]} 65% ${dark ? 65 : 34}%)`, points: points.sort((a, b) => a[panel.axis] - b[panel.axis]),
  }));
}
