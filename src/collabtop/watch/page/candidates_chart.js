// The chart of candidates: mean and interval of each, in the order of the table; the first ones get more space.

import { colours, grid, prepare, text } from "./drawing.js";

const CROWD = 2000; // from this number of candidates on, several share a pixel
const LAYERS = ["rejected", "inside", "open", "accepted"]; // the last one is drawn on top
export const CANDIDATES = { left: 46, top: 10, right: 10, bottom: 30 };

const positionOf = (index, count) => Math.sqrt((index + 0.5) / count);

export function placeAt(position, count) {
  return Math.min(count - 1, Math.max(0, Math.floor(position * position * count)));
}

export function drawCandidates(canvas, rows, m, selected) {
  const { pen, frame } = prepare(canvas, CANDIDATES);
  const colour = colours();
  if (!rows.some((row) => row.mean !== null)) {
    text(pen, rows.length ? "No rewards yet." : "No candidate matches.", (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2, colour.soft, "center");
    return;
  }
  const [low, high] = extent(rows);
  const x = (index) => frame.left + positionOf(index, rows.length) * frame.width;
  const y = (value) => frame.bottom - ((Math.min(high, Math.max(low, value)) - low) / (high - low || 1)) * frame.height;
  drawScale(pen, frame, low, high, y, colour);
  if (m !== null) drawBorder(pen, frame, rows, m, x, colour);
  const roomy = frame.width / rows.length > 3;
  for (const verdict of LAYERS) {
    const group = [];
    rows.forEach((row, index) => { if (row.verdict === verdict && row.mean !== null) group.push([row, index]); });
    if (!group.length) continue;
    const marks = { range: colour[`${verdict}-range`], dot: colour[verdict] };
    if (rows.length > CROWD) drawCrowd(pen, group, x, y, marks);
    else drawEach(pen, group, x, y, marks, roomy, rows.length > 200 ? 2 : 3.2, verdict === "inside");
  }
  if (selected !== null && rows[selected]) drawSelected(pen, frame, rows[selected], selected, x, y, colour);
  drawPlaces(pen, frame, rows.length, x, colour);
}

function extent(rows) {
  let low = Infinity, high = -Infinity;
  for (const row of rows) {
    if (row.mean === null) continue;
    low = Math.min(low, row.mean, ((row.low ?? row.mean) + row.mean) / 2); high = Math.max(high, row.mean, ((row.high ?? row.mean) + row.mean) / 2);
  }
  const spare = 0.02 * (high - low || 1);
  return [low >= 0 ? Math.max(0, low - spare) : low - spare, high <= 1 && low >= 0 ? Math.min(1, high + spare) : high + spare];
}

function drawScale(pen, frame, low, high, y, colour) {
  const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const format = new Intl.NumberFormat(undefined, { minimumFractionDigits: Math.max(0, -Math.floor(Math.log10(step))), maximumFractionDigits: Math.max(0, -Math.floor(Math.log10(step))) });
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) grid(pen, frame, y(value), format.format(Math.abs(value) < 1e-9 * step ? 0 : value), colour);
}

function drawSelected(pen, frame, row, index, x, y, colour) {
  pen.strokeStyle = colour.focus; pen.lineWidth = 2;
  pen.beginPath(); pen.moveTo(x(index), frame.top); pen.lineTo(x(index), frame.bottom); pen.stroke();
  if (row.mean !== null) { pen.beginPath(); pen.arc(x(index), y(row.mean), 6, 0, 7); pen.stroke(); }
}

function drawPlaces(pen, frame, count, x, colour) {
  let lastX = -99;
  for (let power = 1; power <= count; power *= 10) {
    for (const place of [power, 2 * power, 5 * power]) {
      if (place <= count && x(place - 1) - lastX > 26) { text(pen, place.toLocaleString(), x(place - 1), frame.bottom + 11, colour.soft, "center"); lastX = x(place - 1); }
    }
  }
  text(pen, "place in the table", frame.right, frame.bottom + 24, colour.soft, "right");
}

function drawEach(pen, group, x, y, marks, roomy, radius, hollow) {
  pen.strokeStyle = marks.range; pen.lineWidth = roomy ? 2 : 1;
  pen.beginPath();
  for (const [row, index] of group) { if (row.low !== null) { pen.moveTo(x(index), y(row.low)); pen.lineTo(x(index), y(row.high)); } }
  pen.stroke();
  pen.strokeStyle = pen.fillStyle = marks.dot;
  pen.beginPath();
  for (const [row, index] of group) { pen.moveTo(x(index) + radius, y(row.mean)); pen.arc(x(index), y(row.mean), radius, 0, 7); }
  if (hollow) pen.stroke(); else pen.fill();
}

// Several candidates per pixel: one bar for all intervals in a column of pixels, and each dot once.
function drawCrowd(pen, group, x, y, marks) {
  pen.fillStyle = marks.range;
  let column = null, top = 0, bottom = 0;
  const bar = () => { if (column !== null) pen.fillRect(column, top, 1, Math.max(1, bottom - top)); };
  for (const [row, index] of group) {
    const pixel = Math.floor(x(index)), high = y(row.high ?? row.mean), low = y(row.low ?? row.mean);
    if (pixel !== column) { bar(); column = pixel; top = high; bottom = low; } else { top = Math.min(top, high); bottom = Math.max(bottom, low); }
  }
  bar();
  pen.fillStyle = marks.dot;
  let lastCell = null;
  for (const [row, index] of group) {
    const left = Math.round(x(index)), top = Math.round(y(row.mean)), cell = left * 65536 + top;
    if (cell !== lastCell) pen.fillRect(left - 1, top - 1, 2, 2);
    lastCell = cell;
  }
}

function drawBorder(pen, frame, rows, m, x, colour) {
  if (m >= rows.length) return;
  const border = (x(m - 1) + x(m)) / 2;
  pen.strokeStyle = colour.order; pen.lineWidth = 1.5; pen.setLineDash([5, 4]);
  pen.beginPath(); pen.moveTo(border, frame.top); pen.lineTo(border, frame.bottom); pen.stroke(); pen.setLineDash([]);
  text(pen, `the best ${m.toLocaleString()}`, border + 5, frame.bottom - 9, colour.order);
}
