/** A plot of numbers over time. */
import { useEffect, useRef } from "preact/hooks";
import { h } from "preact";
import uPlot from "uplot";
import { count } from "../page/format.js";
import { useIsDark } from "./scheme.js";

/**
 * @typedef {object} Line
 * @property {string} label
 * @property {string} colour name of a variable of the styles
 * @property {(number | null)[]} values
 * @property {boolean} [isFilled]
 * @property {boolean} [isDashed]
 */

/**
 * Lines over time, with a table of the last values for screen readers.
 * @param {{times: number[], lines: Line[], label: string, height?: number, format?: (value: number) => string, max?: number, isCount?: boolean}} props times: seconds since the epoch; numbers if isCount
 */
export function Plot({ times, lines, label, height = 200, format = String, max, isCount = false }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | null} */ (null));
  const isDark = useIsDark();
  const names = lines.map((line) => line.label).join("|");
  useEffect(() => {
    const element = /** @type {HTMLDivElement} */ (box.current);
    const made = new uPlot(
      optionsOf(element, lines, { height, format, max, isCount }),
      [[], ...lines.map(() => [])],
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [names, height, max, isDark]);
  useEffect(() => {
    plot.current?.setData([times, ...lines.map((line) => line.values)]);
  }, [times, lines, names, height, max, isDark]);
  const last = lines
    .map(
      (line) =>
        `${line.label} ${shown(
          line.values.findLast((value) => value !== null),
          format,
        )}`,
    )
    .join(", ");
  return h(
    "div",
    {},
    h("div", { ref: box, role: "img", "aria-label": `${label}: last ${last}`, style: { minHeight: `${height}px` } }),
  );
}

/** Numbers as labels of an axis. @param {uPlot} _plot @param {number[]} splits */
const countLabels = (_plot, splits) => splits.map((each) => (Number.isInteger(each) ? count(each) : ""));

/** Times as labels of an axis: the hour within two days, else the date. @param {uPlot} _plot @param {number[]} splits */
function timeLabels(_plot, splits) {
  const isLong = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > 172_800;
  return splits.map((each) => {
    const date = new Date(1000 * each);
    return isLong ? `${date.getMonth() + 1}/${date.getDate()}` : date.toTimeString().slice(0, 5);
  });
}

/** @param {number | null | undefined} value @param {(value: number) => string} format */
const shown = (value, format) => (value === null || value === undefined ? "–" : format(value));

/** The present value of a colour of the styles, as `rgb(…)`: a canvas knows no variables. @param {HTMLElement} element @param {string} name */
function colourOf(element, name) {
  element.style.color = `var(${name})`;
  const value = getComputedStyle(element).color;
  element.style.color = "";
  return value;
}

/**
 * @param {HTMLElement} element @param {Line[]} lines
 * @param {{height: number, format: (value: number) => string, max: number | undefined, isCount: boolean}} form
 * @returns {uPlot.Options}
 */
function optionsOf(element, lines, { height, format, max, isCount }) {
  const colour = (/** @type {string} */ name) => colourOf(element, name);
  const axis = {
    stroke: colour("--ink-2"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  return {
    width: Math.max(200, element.clientWidth),
    height,
    legend: { live: true },
    cursor: { y: false },
    scales: {
      x: { time: !isCount },
      y: { range: (_plot, low, high) => [Math.min(0, low ?? 0), max ?? Math.max((high ?? 1) * 1.1, 1e-9)] },
    },
    axes: [
      { ...axis, values: isCount ? countLabels : timeLabels },
      { ...axis, size: 64, values: (_plot, values) => values.map(format) },
    ],
    series: [
      isCount
        ? { label: "Requests", value: (_plot, at) => shown(at, count) }
        : { value: (_plot, at) => (at ? new Date(1000 * at).toTimeString().slice(0, 8) : "–") },
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 2,
        points: { show: false },
        ...(line.isDashed ? { dash: [5, 4] } : {}),
        ...(line.isFilled ? { fill: `${colour(line.colour).replace(")", ", 0.2)")}` } : {}),
        value: (/** @type {uPlot} */ _plot, /** @type {number | null} */ value) => shown(value, format),
      })),
    ],
  };
}
