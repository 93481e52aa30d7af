// Charts on a canvas. Colours come from the style sheet, so light and dark need no code here.

import { whole } from "./format.js";

const FONT = "12px system-ui, sans-serif";
const CROWD = 2000; // from this number of candidates on, several share a pixel

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: of("ink"), soft: of("soft"), line: of("line"), card: of("card"), open: of("open"), accepted: of("accepted"),
    rejected: of("rejected"), inside: of("inside"), baseline: of("baseline"), order: of("order"), focus: of("focus") };
}

// Clears a canvas, fits it to the device pixels, and returns its context and the frame inside the margins.
export function prepare(canvas, margins) {
  const box = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(box.width * scale)), height = Math.max(1, Math.round(box.height * scale));
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  pen.font = FONT;
  const frame = { left: margins.left, top: margins.top, right: box.width - margins.right, bottom: box.height - margins.bottom };
  frame.width = frame.right - frame.left; frame.height = frame.bottom - frame.top;
  return { pen, frame };
}

export function text(pen, content, x, y, colour, align = "left", baseline = "middle") {
  pen.fillStyle = colour; pen.textAlign = align; pen.textBaseline = baseline;
  pen.fillText(content, x, y);
}

function grid(pen, frame, y, label, colour) {
  pen.strokeStyle = colour.line; pen.lineWidth = 1;
  pen.beginPath(); pen.moveTo(frame.left, Math.round(y) + 0.5); pen.lineTo(frame.right, Math.round(y) + 0.5); pen.stroke();
  text(pen, label, frame.left - 6, y, colour.soft, "right");
}

function short(value) {
  if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  return value >= 1e4 ? `${+(value / 1e3).toPrecision(3)}k` : whole(value);
}

// -- all candidates: mean and interval, best on the left; the best ones get more space

function positionOf(rank, count) {
  return Math.sqrt((rank + 0.5) / count);
}

export function rankAt(position, count) {
  return Math.min(count - 1, Math.max(0, Math.floor(position * position * count)));
}

export const CANDIDATES = { left: 40, top: 10, right: 10, bottom: 30 };

export function drawCandidates(canvas, points, m, selected) {
  const { pen, frame } = prepare(canvas, CANDIDATES);
  const colour = colours();
  if (!points.length) {
    text(pen, "No data yet.", (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2, colour.soft, "center");
    return;
  }
  let low = 1, high = 0;
  for (const point of points) { low = Math.min(low, point.mean, (point.low + point.mean) / 2); high = Math.max(high, point.mean, (point.high + point.mean) / 2); }
  low = Math.max(0, low - 0.02); high = Math.min(1, high + 0.02);
  const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((size) => (high - low) / size <= 7) || 0.5;
  const x = (rank) => frame.left + positionOf(rank, points.length) * frame.width;
  const y = (value) => frame.bottom - ((Math.min(high, Math.max(low, value)) - low) / (high - low || 1)) * frame.height;
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step) grid(pen, frame, y(value), value.toFixed(step < 0.1 ? 2 : 1), colour);
  drawBorder(pen, frame, points, m, x, y, colour);
  const roomy = frame.width / points.length > 3;
  for (const [verdict, strength] of [["rejected", 0.35], ["inside", 0.55], ["open", 1], ["accepted", 1]]) {
    const group = points.map((point, rank) => [point, rank]).filter(([point]) => point.verdict === verdict);
    if (!group.length) continue;
    pen.strokeStyle = pen.fillStyle = colour[verdict];
    if (points.length > CROWD) drawCrowd(pen, group, x, y, strength);
    else drawEach(pen, group, x, y, strength, roomy, points.length > 200 ? 2 : 3.2, verdict === "inside");
    pen.globalAlpha = 1;
  }
  if (selected !== null && points[selected]) {
    const point = points[selected];
    pen.strokeStyle = colour.focus; pen.lineWidth = 2;
    pen.beginPath(); pen.moveTo(x(selected), frame.top); pen.lineTo(x(selected), frame.bottom); pen.stroke();
    pen.beginPath(); pen.arc(x(selected), y(point.mean), 6, 0, 7); pen.stroke();
  }
  const ranks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000].filter((rank) => rank <= points.length);
  let lastX = -99;
  for (const rank of ranks) {
    if (x(rank - 1) - lastX > 34) { text(pen, short(rank), x(rank - 1), frame.bottom + 11, colour.soft, "center"); lastX = x(rank - 1); }
  }
  text(pen, "rank by estimate", frame.right, frame.bottom + 24, colour.soft, "right");
}

function drawEach(pen, group, x, y, strength, roomy, radius, hollow) {
  pen.globalAlpha = strength * (roomy ? 0.55 : 0.3); pen.lineWidth = roomy ? 2 : 1;
  pen.beginPath();
  for (const [point, rank] of group) { pen.moveTo(x(rank), y(point.low)); pen.lineTo(x(rank), y(point.high)); }
  pen.stroke();
  pen.globalAlpha = strength;
  pen.beginPath();
  for (const [point, rank] of group) { pen.moveTo(x(rank) + radius, y(point.mean)); pen.arc(x(rank), y(point.mean), radius, 0, 7); }
  hollow ? pen.stroke() : pen.fill();
}

// Several candidates per pixel: one bar for all intervals in a column of pixels, and each dot once.
function drawCrowd(pen, group, x, y, strength) {
  pen.globalAlpha = strength * 0.3;
  let column = null, top = 0, bottom = 0;
  const bar = () => { if (column !== null) pen.fillRect(column, top, 1, Math.max(1, bottom - top)); };
  for (const [point, rank] of group) {
    const pixel = Math.floor(x(rank)), high = y(point.high), low = y(point.low);
    if (pixel !== column) { bar(); column = pixel; top = high; bottom = low; }
    else { top = Math.min(top, high); bottom = Math.max(bottom, low); }
  }
  bar();
  pen.globalAlpha = strength;
  let lastCell = null;
  for (const [point, rank] of group) {
    const left = Math.round(x(rank)), top = Math.round(y(point.mean)), cell = left * 65536 + top;
    if (cell !== lastCell) pen.fillRect(left - 1, top - 1, 2, 2);
    lastCell = cell;
  }
}

function drawBorder(pen, frame, points, m, x, y, colour) {
  if (m >= points.length) return;
  const border = (x(m - 1) + x(m)) / 2;
  pen.strokeStyle = colour.order; pen.lineWidth = 1.5; pen.setLineDash([5, 4]);
  pen.beginPath(); pen.moveTo(border, frame.top); pen.lineTo(border, frame.bottom); pen.stroke(); pen.setLineDash([]);
  text(pen, `the best ${m}`, border + 5, frame.top + 7, colour.order);
}

// -- rounds: open, accepted and settled candidates

export function drawRounds(canvas, rounds, n) {
  const { pen, frame } = prepare(canvas, { left: 40, top: 20, right: 6, bottom: 34 });
  const colour = colours();
  const count = rounds.live.length;
  if (!count) {
    text(pen, "No round has started yet.", (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2, colour.soft, "center");
    return;
  }
  const height = (value) => (Math.log1p(value) / Math.log1p(n)) * frame.height;
  for (const value of [0, 1, 10, 100, 1000, 10000, 100000, 1000000].filter((value) => value <= n)) grid(pen, frame, frame.bottom - height(value), short(value), colour);
  const slot = frame.width / count, bar = Math.max(1, Math.min(26, slot * 0.27));
  const labelled = slot > 84;
  const every = Math.ceil(count / Math.max(1, Math.floor(frame.width / 34)));
  for (let r = 0; r < count; r += 1) {
    const middle = frame.left + (r + 0.5) * slot;
    const bars = [[rounds.live[r], colour.open], [rounds.accepted[r], colour.accepted], [rounds.rejected[r] + rounds.inside[r], colour.rejected]];
    bars.forEach(([value, fill], index) => {
      const left = middle + (index - 1.5) * bar, tall = height(value);
      pen.fillStyle = fill; pen.fillRect(left, frame.bottom - tall, Math.max(1, bar - 1.5), tall);
      if (labelled && value) text(pen, short(value), left + bar / 2, frame.bottom - tall - 7, colour.soft, "center");
    });
    if (!labelled && slot > 22 && rounds.live[r]) text(pen, short(rounds.live[r]), middle - bar, frame.bottom - height(rounds.live[r]) - 7, colour.soft, "center");
    if (r % every === 0) {
      text(pen, String(r), middle, frame.bottom + 11, colour.soft, "center");
      if (slot > 44) text(pen, rounds.phase[r], middle, frame.bottom + 25, colour.soft, "center");
    }
  }
}

// -- step lines: words over time, on a logarithmic scale

export function drawLines(canvas, lines, level, width, unit) {
  const { pen, frame } = prepare(canvas, { left: 46, top: 14, right: 12, bottom: 32 });
  const colour = colours();
  const top = Math.max(10, level ? level.value : 0, ...lines.flatMap((line) => line.points.map((point) => point[1]))) * 1.6;
  const y = (value) => frame.bottom - (Math.log1p(value) / Math.log1p(top)) * frame.height;
  const x = (value) => frame.left + (value / (width || 1)) * frame.width;
  for (const value of [0, 10, 100, 1000, 10000, 100000, 1e6, 1e7, 1e8].filter((value) => value <= top)) grid(pen, frame, y(value), short(value), colour);
  if (level) {
    pen.strokeStyle = colour.order; pen.lineWidth = 1.5; pen.setLineDash([6, 4]);
    pen.beginPath(); pen.moveTo(frame.left, y(level.value)); pen.lineTo(frame.right, y(level.value)); pen.stroke(); pen.setLineDash([]);
    text(pen, level.name, frame.right, y(level.value) + 9, colour.order, "right");
  }
  for (const line of lines) {
    pen.strokeStyle = line.colour; pen.lineWidth = line.strong ? 2.6 : 1.6;
    pen.beginPath(); pen.moveTo(x(0), y(0));
    let last = 0;
    for (const [time, value] of line.points) { pen.lineTo(x(time), y(last)); pen.lineTo(x(time), y(value)); last = value; }
    pen.stroke();
    if (line.name && line.points.length) {
      const [time, value] = line.points[line.points.length - 1];
      pen.fillStyle = line.colour; pen.beginPath(); pen.arc(x(time), y(value), 3.5, 0, 7); pen.fill();
      const fitsLeft = x(time) - frame.left > 150;
      text(pen, line.name, x(time) + (fitsLeft ? -7 : 8), y(value) - 9, line.colour, fitsLeft ? "right" : "left");
    }
  }
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const label = unit === "%" ? `${part * 100}%` : short(Math.round(part * width));
    text(pen, label, x(part * width), frame.bottom + 11, colour.soft, part === 0 ? "left" : part === 1 ? "right" : "center");
  }
  text(pen, unit === "%" ? "share of the maximum number of pulls" : unit, frame.right, frame.bottom + 25, colour.soft, "right");
}
