// Charts on a canvas. Colours come from the style sheet, so light and dark need no code here.

import { significant, whole } from "./format.js";

const FONT = "12px system-ui, sans-serif";

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["ink", "soft", "line", "card", "open", "accepted", "rejected", "inside", "open-range", "accepted-range", "rejected-range", "inside-range", "baseline", "order", "focus"];
  return Object.fromEntries(names.map((name) => [name, of(name)]));
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

export function grid(pen, frame, y, label, colour) {
  pen.strokeStyle = colour.line; pen.lineWidth = 1;
  pen.beginPath(); pen.moveTo(frame.left, Math.round(y) + 0.5); pen.lineTo(frame.right, Math.round(y) + 0.5); pen.stroke();
  text(pen, label, frame.left - 6, y, colour.soft, "right");
}

export function short(value) {
  if (value > 0 && value < 1) return significant(value);
  if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  return value >= 1e4 ? `${+(value / 1e3).toPrecision(3)}k` : whole(value);
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

// -- one curve: `points` of [x, y] on plain scales

export function drawLine(canvas, points, { x: label, y: title, zero }) {
  const { pen, frame } = prepare(canvas, { left: 52, top: 18, right: 12, bottom: 22 });
  const colour = colours(), xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const scale = plainScale(frame, xs[0], xs.at(-1), zero ? 0 : Math.min(...ys), Math.max(...ys));
  drawFrame(pen, frame, scale, label, title, colour);
  pen.strokeStyle = colour.open; pen.lineWidth = 2; pen.beginPath();
  points.forEach(([x, y], index) => (index ? pen.lineTo(scale.x(x), scale.y(y)) : pen.moveTo(scale.x(x), scale.y(y))));
  pen.stroke();
}

// -- a mean with its interval: `points` of [x, mean, low, high]; without an interval, the last two are null

export function drawBand(canvas, measured, unit) {
  const points = measured.map(([x, value, low, high]) => [x, value, low ?? value, high ?? value]);
  const { pen, frame } = prepare(canvas, { left: 52, top: 10, right: 12, bottom: 34 });
  const colour = colours(), ends = points.flatMap(([, value, low, high]) => (low === null ? [value] : [low, high]));
  const scale = plainScale(frame, 0, points.at(-1)[0], Math.min(...ends), Math.max(...ends));
  drawFrame(pen, frame, scale, short, "", colour);
  const curve = (column, stroke, width) => {
    pen.strokeStyle = stroke; pen.lineWidth = width; pen.beginPath();
    points.forEach((point, index) => (index ? pen.lineTo(scale.x(point[0]), scale.y(point[column])) : pen.moveTo(scale.x(point[0]), scale.y(point[column]))));
    pen.stroke();
  };
  if (points[0][2] !== null) { curve(2, colour["open-range"], 1.5); curve(3, colour["open-range"], 1.5); }
  curve(1, colour.open, 2.4);
  text(pen, unit, frame.right, frame.bottom + 25, colour.soft, "right");
}

function plainScale(frame, left, right, low, high) {
  return {
    left, right, low, high,
    x: (value) => frame.left + ((value - left) / (right - left || 1)) * frame.width,
    y: (value) => frame.bottom - ((value - low) / (high - low || 1)) * frame.height,
  };
}

function drawFrame(pen, frame, scale, label, title, colour) {
  for (const part of [0, 0.5, 1]) {
    const value = scale.low + part * (scale.high - scale.low);
    grid(pen, frame, scale.y(value), significant(value), colour);
    text(pen, label(scale.left + part * (scale.right - scale.left)), frame.left + part * frame.width, frame.bottom + 12, colour.soft, ["left", "center", "right"][2 * part]);
  }
  if (title) text(pen, title, frame.left, frame.top - 10, colour.soft);
}
