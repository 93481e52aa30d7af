// A panel of a study: one line per algorithm, on logarithmic scales.

import { colours, grid, prepare, short, text } from "./drawing.js";

export function drawPanel(canvas, lines, xTitle, yTitle) {
  const { pen, frame } = prepare(canvas, { left: 52, top: 20, right: 26, bottom: 34 });
  const colour = colours(), points = lines.flatMap((line) => line.points);
  if (!points.length) return;
  const positive = points.flatMap((point) => point.slice(1)).filter((value) => value > 0);
  const low = Math.log10(Math.min(...positive, 1e9) / 1.3), high = Math.log10(Math.max(...positive, 1e-9) * 1.3);
  const xs = points.map(([x]) => Math.log10(x)), left = Math.min(...xs), right = Math.max(...xs);
  const x = (value) => frame.left + ((Math.log10(value) - left) / (right - left || 1)) * frame.width;
  const y = (value) => frame.bottom - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low || 1)) * frame.height; // 0 is drawn at the bottom
  const steps = high - low < 1.5 ? [1, 2, 5] : [1]; // within a decade or so, powers of ten are too few
  for (let power = Math.floor(low); power <= high; power += 1) {
    for (const value of steps.map((step) => step * 10 ** power)) if (value >= 10 ** low && value <= 10 ** high) grid(pen, frame, y(value), short(value), colour);
  }
  for (const line of lines) {
    pen.strokeStyle = pen.fillStyle = line.colour; pen.lineWidth = 1;
    for (const [at, , lowEnd, highEnd] of line.points) {
      if (highEnd === undefined) continue;
      pen.beginPath(); pen.moveTo(x(at), y(lowEnd)); pen.lineTo(x(at), y(highEnd)); pen.stroke();
    }
    pen.lineWidth = 2.2; pen.beginPath();
    line.points.forEach(([at, value], index) => (index ? pen.lineTo(x(at), y(value)) : pen.moveTo(x(at), y(value))));
    pen.stroke();
    for (const [at, value] of line.points) { pen.beginPath(); pen.arc(x(at), y(value), 3, 0, 7); pen.fill(); }
  }
  const ticks = [...new Set(points.map(([at]) => at))].sort((a, b) => a - b);
  let lastX = -99;
  for (const tick of ticks) if (x(tick) - lastX > 40) { text(pen, short(tick), x(tick), frame.bottom + 12, colour.soft, "center"); lastX = x(tick); }
  text(pen, yTitle, frame.left, frame.top - 11, colour.soft);
  text(pen, xTitle, frame.right, frame.bottom + 26, colour.soft, "right");
}
