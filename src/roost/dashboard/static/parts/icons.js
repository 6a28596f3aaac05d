/** Icons as lines of 24 by 24 units. */
import { h } from "preact";

const PATHS = /** @type {Record<string, string[]>} */ ({
  roost: ["M3 11 12 4l9 7", "M6 13h12", "M6 17h12", "M6 21h12"],
  fleet: ["M4 4h6v6H4z", "M14 4h6v6h-6z", "M4 14h6v6H4z", "M14 14h6v6h-6z"],
  decisions: ["M4 6h16", "M7 12h10", "M10 18h4"],
  try: ["M5 12h14", "M13 6l6 6-6 6"],
  live: ["M3 12h4l3-8 4 16 3-8h4"],
  capacity: ["M4 20V10", "M10 20V4", "M16 20v-7", "M21 20H3"],
  work: ["M4 7h10a4 4 0 0 1 0 8H7", "M10 12l-3 3 3 3"],
  policies: ["M12 4v16", "M5 8h14", "M5 8l-2 6h4z", "M19 8l-2 6h4z"],
  settings: ["M4 7h10", "M18 7h2", "M4 17h2", "M10 17h10", "M16 5v4", "M8 15v4"],
  search: ["M11 4a7 7 0 1 0 0 14a7 7 0 0 0 0-14", "M16 16l4 4"],
});

/** @param {{name: string, size?: number}} props */
export function Icon({ name, size = 16 }) {
  return h(
    "svg",
    {
      width: size,
      height: size,
      viewBox: "0 0 24 24",
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 2,
      "stroke-linecap": "round",
      "stroke-linejoin": "round",
      "aria-hidden": "true",
    },
    (PATHS[name] ?? []).map((d) => h("path", { key: d, d })),
  );
}
