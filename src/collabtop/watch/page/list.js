// All runs and studies: their outcomes, and their communication.

import { $, clamped, fill, listen, make, setText, tabs } from "./parts.js";
import { dateTime, duration, money, percent, whole } from "./format.js";
import { drawLines } from "./drawing.js";

const HUES = [215, 160, 25, 280, 345, 190, 45, 120], MAX_COMPARED = 8;
const excluded = new Set();
let runs = [];

export function showList() {
  $("list").hidden = false;
  document.title = "Runs · collabtop";
  tabs("list", drawCompare);
  addEventListener("resize", drawCompare);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCompare);
  listen("/api/events", (update) => {
    const studies = update.studies || [];
    if (runs.length === 0 && update.runs.length + studies.length === 1 && !sessionStorage.getItem("listed")) {
      sessionStorage.setItem("listed", "yes");
      location.replace(update.runs.length ? address(update.runs[0].name) : studyAddress(studies[0].name)); // a single run is shown directly, but only once, so that the list stays reachable
      return;
    }
    runs = update.runs;
    draw(studies);
  });
}

const address = (name) => `/runs/${encodeURIComponent(name)}`;
const studyAddress = (name) => `/studies/${encodeURIComponent(name)}`;

function colourOf(index) { return `hsl(${HUES[index % HUES.length]} 65% ${matchMedia("(prefers-color-scheme: dark)").matches ? 65 : 34}%)`; }

function link(href, name) { const element = make("a", "", clamped(name)); element.href = href; return element; }

function pill(status) { return make("span", `pill ${status}`, status); }

function draw(studies) {
  $("list-empty").hidden = runs.length + studies.length > 0;
  $("runs-card").hidden = runs.length === 0;
  fill("runs", runs.map((run) => {
    const name = make("span", "run-name"); name.append(link(address(run.name), run.title), make("span", "narrow", pill(run.status)));
    const status = make("span"); status.append(pill(run.status));
    if (run.lost) status.append(" ", make("span", "warning", `${whole(run.lost)} agents lost`));
    if (run.failed) status.append(" ", make("span", "warning", `${whole(run.failed)} failed`));
    if (run.n === undefined) return { cells: [name, status, run.error ? make("span", "warning", run.error) : "–", "–", "–", "–", "–", "–", "–"] };
    const agents = run.agents === 1 ? "1 agent" : `${whole(run.agents)} agents`;
    const end = run.status === "running" ? Date.now() / 1000 : run.latest;
    return { cells: [name, status, answer(run), run.money ? money(run.money.spent) : "–", run.error_bound === null ? "–" : `≤\u00a0${percent(run.error_bound)}`, whole(run.pulls), dateTime(run.started), run.started === null ? "–" : duration(end - run.started), `${whole(run.m)} of ${whole(run.n)} by ${run.algorithm}, ${agents}`] };
  }));
  $("studies-card").hidden = studies.length === 0;
  fill("studies", studies.map((study) => ({ cells: [link(studyAddress(study.name), study.name), pill(study.status), study.errors ? errors(study.errors) : "–", whole(study.points), whole(study.runs)] })));
  drawCompare();
}

// The share of wrong answers, of the best point of a study and of the worst.
const errors = ([low, high]) => (low === high ? percent(low) : `${percent(low)} to ${percent(high)}`);

// The answer, and whether other runs with the same candidates have the same answer.
function answer(run) {
  if (!run.top) return "–";
  const cell = make("span");
  cell.append(clamped(run.top[0]));
  if (run.m > 1) cell.append(make("span", "soft", ` and ${whole(run.m - 1)} more`));
  const others = runs.filter((other) => other !== run && other.answer && run.answer && other.m === run.m && other.answer.split(" ")[0] === run.answer.split(" ")[0]);
  if (others.length) {
    const same = others.filter((other) => other.answer === run.answer).length, all = same === others.length;
    cell.append(make("span", all ? "same-answer" : "warning", all ? "same as all others" : same ? `same as ${same} of ${others.length} others` : "different from all others"));
  }
  return cell;
}

function drawCompare() {
  const drawable = runs.filter((run) => run.points && run.points.length);
  fill("compared", drawable.map((run, index) => {
    const name = make("label", "run-name"), tick = make("input"); tick.type = "checkbox"; tick.checked = !excluded.has(run.name) && index < MAX_COMPARED; tick.disabled = index >= MAX_COMPARED;
    tick.ariaLabel = `show ${run.title} in the chart`;
    tick.addEventListener("change", () => { tick.checked ? excluded.delete(run.name) : excluded.add(run.name); drawCompare(); });
    const key = make("span", "key"); key.style.background = index < MAX_COMPARED ? colourOf(index) : "none";
    name.append(tick, key, clamped(run.title));
    return { cells: [name, run.algorithm, whole(run.words), whole(run.bits), whole(run.round_trips)] };
  }));
  const shown = drawable.slice(0, MAX_COMPARED).map((run, index) => [run, index]).filter(([run]) => !excluded.has(run.name));
  const lines = shown.map(([run, index]) => ({ colour: colourOf(index), strong: true, points: run.points.map(([pulls, words]) => [pulls / run.max_pulls, words]) }));
  if (!$("compare").hidden) drawLines($("compare-chart"), lines, null, 1, "%");
  setText("about", `${whole(runs.length)} ${runs.length === 1 ? "run" : "runs"}.`);
}
