/** The legend of the map, with the number of hosts of each colour. */
import { h } from "preact";
import { count, counted } from "../page/format.js";
import { mix, paletteOf } from "./colours.js";
import { DISABLED, DOWN, DRAINING, NONE, OVER } from "./fleet_file.js";
import { useIsDark } from "../parts/scheme.js";
import { UP_SHARE } from "./map_painter.js";
import { SHADES, stepName, sumUp, totalText } from "../room/room.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */
/** @typedef {import("../room/room.js").Room} Room */

/** @param {{fleet: Fleet, colour: string, turn: number, room: Room | null, wish: string, state: number, setState: (state: number) => void}} props */
export function Legend({ fleet, colour, room, wish, state, setState }) {
  const { scale } = paletteOf(useIsDark());
  const counts = { none: 0, disabled: 0, draining: 0, down: 0, over: 0, up: 0 };
  const column = fleet.classes.indexOf(colour);
  for (let host = 0; host < fleet.hosts; host += 1) {
    const bits = fleet.states[host] ?? 0;
    if (!(bits & (DISABLED | DRAINING | DOWN))) counts.up += 1;
    if (bits & DISABLED) counts.disabled += 1;
    if (bits & DRAINING) counts.draining += 1;
    if (bits & DOWN) counts.down += 1;
    if (bits & OVER) counts.over += 1;
    if (column >= 0 && fleet.shares[column]?.[host] === NONE) counts.none += 1;
  }
  const chip = (
    /** @type {string} */ name,
    /** @type {number} */ bit,
    /** @type {string} */ title,
    /** @type {number} */ number,
  ) =>
    h(
      "button",
      {
        key: name,
        class: "button plain",
        type: "button",
        "aria-pressed": state === bit ? "true" : "false",
        onClick: () => setState(state === bit ? 0 : bit),
      },
      h("span", { class: `swatch ${name}` }),
      `${title} ${count(number)}`,
    );
  const ends = colour === "age" ? ["just now", "an hour ago"] : ["0%", "100% used"];
  return h(
    "div",
    { class: "legend" },
    colour === "state"
      ? h("span", {}, h(Swatch, { colour: cssOf(mix(scale, UP_SHARE / 1000)) }), `up ${count(counts.up)}`)
      : colour === "fit"
        ? h(Steps, { room, wish, scale })
        : [
            ends[0],
            h("span", { class: "legend-scale", style: { background: `linear-gradient(90deg, ${scale.join(", ")})` } }),
            ends[1],
          ],
    column >= 0 ? h("span", {}, h("span", { class: "swatch none" }), `has none ${count(counts.none)}`) : null,
    chip("disabled", DISABLED, "disabled", counts.disabled),
    counts.draining || colour === "state" ? chip("draining", DRAINING, "draining", counts.draining) : null,
    chip("down", DOWN, "down", counts.down),
    counts.over ? chip("over", OVER, "over capacity", counts.over) : null,
  );
}

/** How many hosts have room for how many more, and the sum. @param {{room: Room | null, wish: string, scale: string[]}} props */
function Steps({ room, wish, scale }) {
  if (!room) return null;
  const { hosts } = sumUp(room);
  return [
    h("strong", { role: "status" }, totalText(room, wish)),
    hosts.map((number, step) =>
      h(
        "span",
        { key: step, title: `${counted(number, "host")} with room for ${stepName(step)}` },
        h(Swatch, { colour: cssOf(mix(scale, (SHADES[step] ?? 0) / 1000)) }),
        `${stepName(step)}: ${count(number)}`,
      ),
    ),
    room.warnings.map((text) => h("span", { key: text, class: "second" }, text)),
  ];
}

/** @param {{colour: string}} props */
const Swatch = ({ colour }) => h("span", { class: "swatch", style: { background: colour } });

/** @param {number[]} rgb */
const cssOf = (rgb) => `rgb(${rgb.join(",")})`;
