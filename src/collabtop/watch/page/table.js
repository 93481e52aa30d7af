// A table of which only the rows in view are in the document, so that it can have any number of them.

import { make } from "./parts.js";

const SPARE = 6; // rows above and below those in view

export class WindowedTable {
  // `fillRow(row, cells)` fills the cells of a row, which may have shown a different row before.
  constructor(box, fillRow) {
    this.box = box; this.fillRow = fillRow; this.rows = []; this.heads = [];
    this.table = box.querySelector("table");
    this.before = make("tr", "spacer"); this.after = make("tr", "spacer");
    for (const spacer of [this.before, this.after]) { spacer.ariaHidden = "true"; spacer.append(make("td")); }
    this.body = this.table.tBodies[0];
    box.addEventListener("scroll", () => this.drawLater(), { passive: true });
    new ResizeObserver(() => this.drawLater()).observe(box);
  }

  setColumns(columns, heads) {
    this.heads = heads;
    this.table.tHead.rows[0].replaceChildren(...heads);
    this.table.querySelector("colgroup").replaceChildren(...columns.map((column) => {
      const element = make("col");
      if (column.width) element.style.width = `${column.width}rem`;
      return element;
    }));
    const fixed = columns.reduce((sum, column) => sum + (column.width || 0), 0);
    this.table.style.minWidth = `${fixed + 9.5}rem`; // the column without a width keeps room for a label
    this.labelColumn = columns.findIndex((column) => !column.width);
    this.body.replaceChildren(this.before, this.after);
    for (const spacer of [this.before, this.after]) spacer.firstElementChild.colSpan = columns.length;
  }

  show(rows, total) {
    this.rows = rows;
    this.table.ariaRowCount = String(rows.length + 1);
    this.draw();
  }

  drawLater() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.draw(); });
  }

  draw() {
    const height = this.rowHeight(), inView = Math.ceil(this.box.clientHeight / height) || 1;
    const first = Math.max(0, Math.min(Math.floor(this.box.scrollTop / height) - SPARE, this.rows.length - inView - 2 * SPARE));
    const last = Math.min(this.rows.length, first + inView + 2 * SPARE);
    while (this.body.rows.length - 2 > last - first) this.after.previousElementSibling.remove();
    while (this.body.rows.length - 2 < last - first) this.after.before(this.newRow());
    for (let index = first; index < last; index += 1) {
      const line = this.body.rows[index - first + 1];
      line.ariaRowIndex = String(index + 2);
      this.fillRow(this.rows[index], line.cells);
    }
    this.before.firstElementChild.style.height = `${first * height}px`; this.before.hidden = first === 0;
    this.after.firstElementChild.style.height = `${(this.rows.length - last) * height}px`; this.after.hidden = last === this.rows.length;
  }

  newRow() {
    const line = make("tr");
    this.heads.forEach((_, column) => {
      const cell = make(column === this.labelColumn ? "th" : "td");
      if (column === this.labelColumn) cell.scope = "row";
      line.append(cell);
    });
    return line;
  }

  rowHeight() {
    return parseFloat(getComputedStyle(this.box).getPropertyValue("--row-height")) * parseFloat(getComputedStyle(document.documentElement).fontSize);
  }
}
