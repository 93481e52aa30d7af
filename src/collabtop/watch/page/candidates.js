// All candidates: search, filter, sort and choice of columns; the chart and the table show the same rows.

import { CANDIDATES, drawCandidates, placeAt } from "./candidates_chart.js";
import { $, clamped, make, setText } from "./parts.js";
import { ORDER, placesOf, signOf, standing } from "./standing.js";
import { VERDICT_TEXT, mean, money, range, whole } from "./format.js";
import { WindowedTable } from "./table.js";

const COLUMNS = [
  { key: "place", title: "place", width: 3.2, number: true, text: placesOf },
  { key: "label", title: "candidate", text: (row) => row.label },
  { key: "mean", title: "mean", width: 4.6, number: true, text: (row) => mean(row.mean) + (row.fromLog && row.mean !== null ? "°" : "") },
  { key: "interval", title: "95% interval", width: 9.4, text: (row) => range(row.low, row.high), value: (row) => (row.high === null ? null : row.low - row.high) },
  { key: "pulls", title: "pulls", width: 5, number: true, text: (row) => whole(row.pulls) },
  { key: "verdict", title: "verdict", width: 6.6, text: (row) => (row.verdict === "inside" ? "inside an agent" : row.verdict), className: (row) => `verdict-${row.verdict}`, value: (row) => VERDICT_ORDER.indexOf(row.verdict) },
  { key: "round", title: "settled in round", width: 5, number: true, text: (row) => whole(row.round) },
  { key: "spent", title: "cost", width: 5, number: true, text: (row) => money(row.spent) },
  { key: "failed", title: "failed", width: 4.6, number: true, text: (row) => whole(row.failed) },
];
const NARROW = ["place", "label", "mean"], WIDE = ["place", "label", "mean", "interval", "pulls", "verdict"];
const VERDICT_ORDER = Object.keys(VERDICT_TEXT).sort();
const DESCENDING = new Set(["pulls", "failed", "interval", "spent"]); // the order of the first click
const whenIdle = window.requestIdleCallback || setTimeout; // Safari has no idle callbacks
const STORED = "collabtop columns";

export class Candidates {
  constructor({ open, compare }) {
    this.all = []; this.rows = []; this.selected = null; this.picked = []; this.sort = { key: "place", descending: false };
    this.open = open; this.state = null; this.source = null;
    this.columns = storedColumns() || (matchMedia("(max-width: 40rem)").matches ? NARROW : WIDE);
    this.table = new WindowedTable($("candidate-window"), (row, cells) => this.fillRow(row, cells));
    $("search").addEventListener("input", () => this.refresh());
    $("verdict").addEventListener("change", () => this.refresh());
    $("source").addEventListener("change", () => { this.source = $("source").value; if (this.state) { this.update(this.state); this.onSource?.(); } });
    $("open-comparison").addEventListener("click", () => compare(...this.picked));
    const canvas = $("candidates");
    canvas.addEventListener("keydown", (event) => this.moveByKey(event));
    canvas.addEventListener("pointermove", (event) => this.moveByPointer(event));
    canvas.addEventListener("click", (event) => { this.moveByPointer(event); if (this.rows[this.selected]) open(this.rows[this.selected].arm); });
    this.makeColumnMenu(); this.makeHead();
  }

  // The source that the page shows unless the reader chooses one: while a run goes on, its coordinator knows little.
  currentSource(state) {
    return this.source || (state.status.status === "finished" && state.arms.mean.some((value) => value !== null) ? "known" : "seen");
  }

  update(state) {
    if (this.state?.head.labels !== state.head.labels) whenIdle(() => labelKeys(state.head)); // before the first search
    this.state = state;
    const source = this.currentSource(state);
    if ($("source").value !== source) $("source").value = source;
    this.all = standing(state, source);
    this.countVerdicts();
    this.refresh();
  }

  refresh() {
    const text = $("search").value.trim().toLocaleLowerCase(), verdict = $("verdict").value;
    const arm = this.selected === null ? null : this.rows[this.selected]?.arm ?? null;
    let rows = this.all;
    if (verdict) rows = rows.filter((row) => row.verdict === verdict);
    if (text) { const { lowered } = labelKeys(this.state.head); rows = rows.filter((row) => lowered[row.arm].includes(text)); }
    this.rows = this.sorted(rows);
    if (arm !== null) { const index = this.rows.findIndex((row) => row.arm === arm); this.selected = index < 0 ? null : index; }
    this.draw();
  }

  // Rows are in the order of their places: equal keys keep it. Unknown values come last.
  sorted(rows) {
    const { key, descending } = this.sort, sign = descending ? -1 : 1;
    if (key === "place") return descending ? rows.slice().reverse() : rows;
    const column = COLUMNS.find((other) => other.key === key), ranks = key === "label" ? labelKeys(this.state.head).ranks : null;
    const value = ranks ? (row) => ranks[row.arm] : column.value || ((row) => row[key]);
    const keys = Float64Array.from(rows, (row) => sign * (value(row) ?? sign * Infinity));
    return Array.from(Uint32Array.from(rows, (_, index) => index).sort((a, b) => keys[a] - keys[b] || a - b), (index) => rows[index]);
  }

  draw() {
    this.drawChart(); // before the table, whose new rows would have to be laid out first
    this.table.show(this.rows, this.all.length);
    const isWhole = this.rows.length === this.all.length;
    setText("shown-hint", isWhole ? `${whole(this.all.length)} candidates` : `${whole(this.rows.length)} of ${whole(this.all.length)} candidates`);
    const column = COLUMNS.find((other) => other.key === this.sort.key);
    const marked = this.rows.some((row) => row.fromLog && row.mean !== null) ? " ° The coordinator knows no mean: that of all rewards in the log." : "";
    setText("order-hint", `${this.sort.key === "place" ? `Place: ${ORDER}` : `Sorted by ${column.title}.`}${marked}`);
  }

  drawChart() {
    const inOrder = this.sort.key === "place" && !this.sort.descending && this.rows.length === this.all.length;
    drawCandidates($("candidates"), this.rows, inOrder ? this.state.head.m : null, this.selected);
    setText("readout", this.readout());
    $("candidates").ariaValueMax = String(Math.max(1, this.rows.length));
  }

  countVerdicts() {
    const counts = {};
    for (const row of this.all) counts[row.verdict] = (counts[row.verdict] || 0) + 1;
    const select = $("verdict"), chosen = select.value;
    const options = [["", `all (${whole(this.all.length)})`], ...Object.keys(VERDICT_TEXT).filter((name) => counts[name] || name === chosen).map((name) => [name, `${VERDICT_TEXT[name]} (${whole(counts[name] || 0)})`])];
    const shown = JSON.stringify(options);
    if (this.options === shown) return;
    this.options = shown;
    select.replaceChildren(...options.map(([value, title]) => { const option = make("option", "", title); option.value = value; return option; }));
    select.value = chosen;
  }

  // -- the table

  makeHead() {
    const columns = COLUMNS.filter((column) => this.columns.includes(column.key));
    const pick = make("th"); pick.scope = "col"; pick.append(make("span", "visually-hidden", "compare"));
    const heads = columns.map((column) => {
      const head = make("th", column.number ? "number" : ""); head.scope = "col"; head.dataset.key = column.key;
      const button = make("button", "sort", column.title);
      button.addEventListener("click", () => this.sortBy(column.key));
      head.append(button);
      return head;
    });
    this.table.setColumns([{ width: 1.9 }, ...columns], [pick, ...heads]);
    this.shown = columns;
    this.markSort();
  }

  markSort() {
    this.table.heads.forEach((head) => {
      if (!head.dataset.key) return;
      if (head.dataset.key === this.sort.key) head.ariaSort = this.sort.descending ? "descending" : "ascending"; else head.removeAttribute("aria-sort");
    });
  }

  sortBy(key) {
    const first = key === "mean" ? signOf(this.state.head) > 0 : DESCENDING.has(key); // the best mean first
    this.sort = { key, descending: this.sort.key === key ? !this.sort.descending : first };
    this.markSort(); this.selected = null; this.refresh();
  }

  fillRow(row, cells) {
    let pick = cells[0].firstElementChild;
    if (!pick) {
      pick = make("input"); pick.type = "checkbox";
      pick.addEventListener("change", () => this.pick(Number(pick.dataset.arm), pick.checked));
      cells[0].append(pick);
    }
    pick.dataset.arm = row.arm; pick.checked = this.picked.includes(row.arm); pick.ariaLabel = `compare ${row.label.slice(0, 60)}`;
    this.shown.forEach((column, index) => {
      const cell = cells[index + 1], text = column.text(row);
      cell.className = [column.number ? "number" : "", column.className ? column.className(row) : ""].join(" ").trim();
      if (column.key !== "label") { if (cell.textContent !== text) cell.textContent = text; return; }
      let button = cell.firstElementChild;
      if (!button) { button = make("button", "label-button"); button.addEventListener("click", () => this.open(Number(button.dataset.arm))); cell.append(button); }
      if (Number(button.dataset.arm) !== row.arm || button.textContent !== text) { button.replaceChildren(clamped(text)); button.dataset.arm = row.arm; }
    });
  }

  pick(arm, isPicked) {
    this.picked = this.picked.filter((other) => other !== arm);
    if (isPicked) this.picked = [...this.picked, arm].slice(-2);
    $("open-comparison").disabled = this.picked.length < 2;
    this.table.draw();
  }

  makeColumnMenu() {
    const box = $("columns").querySelector("fieldset");
    for (const column of COLUMNS.filter((other) => other.key !== "label")) {
      const label = make("label"), input = make("input");
      input.type = "checkbox"; input.checked = this.columns.includes(column.key);
      input.addEventListener("change", () => {
        this.columns = COLUMNS.map((other) => other.key).filter((key) => (key === column.key ? input.checked : this.columns.includes(key)));
        try { localStorage.setItem(STORED, JSON.stringify(this.columns)); } catch { /* not kept then */ }
        this.makeHead(); this.draw();
      });
      label.append(input, ` ${column.title}`); box.append(label);
    }
  }

  // -- the chart

  readout() {
    const row = this.selected === null ? null : this.rows[this.selected];
    return row ? `${row.label}: place ${whole(row.place)}, mean ${mean(row.mean)}, 95% interval ${range(row.low, row.high)}, ${whole(row.pulls)} pulls, ${VERDICT_TEXT[row.verdict]}.` : "";
  }

  moveTo(index) {
    this.selected = Math.min(this.rows.length - 1, Math.max(0, index));
    this.drawChart();
    // Screen readers announce a move, but not the changes of the selected candidate.
    $("candidates").ariaValueNow = String(this.selected + 1); $("candidates").ariaValueText = this.readout();
  }

  moveByKey(event) {
    const from = this.selected === null ? -1 : this.selected;
    if (event.key === "Enter" && this.rows[this.selected]) { event.preventDefault(); this.open(this.rows[this.selected].arm); return; }
    const to = { ArrowRight: from + 1, ArrowUp: from + 1, ArrowLeft: from - 1, ArrowDown: from - 1, PageDown: from + 10, PageUp: from - 10, Home: 0, End: this.rows.length - 1 }[event.key];
    if (to !== undefined && this.rows.length) { event.preventDefault(); this.moveTo(to); }
  }

  moveByPointer(event) {
    if (!this.rows.length) return;
    const box = $("candidates").getBoundingClientRect();
    const position = (event.clientX - box.left - CANDIDATES.left) / (box.width - CANDIDATES.left - CANDIDATES.right);
    if (position >= 0 && position <= 1) this.moveTo(placeAt(position, this.rows.length));
  }
}

// The labels of a run in lower case, and their places in the order of the alphabet; computed once.
let keys = null;
function labelKeys({ labels, n }) {
  if (keys?.labels === labels && keys.n === n) return keys;
  const names = labels || Array.from({ length: n }, (_, arm) => `candidate ${arm}`), ranks = new Uint32Array(n);
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  Array.from(names.keys()).sort((a, b) => compare(names[a], names[b]) || a - b).forEach((arm, rank) => { ranks[arm] = rank; });
  keys = { labels, n, lowered: names.map((name) => name.toLocaleLowerCase()), ranks };
  return keys;
}

function storedColumns() {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED));
    return Array.isArray(stored) && stored.includes("label") ? stored : null;
  } catch { return null; }
}
