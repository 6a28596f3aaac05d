/** Maps of used shares side by side: one canvas for each set of settings, with the hosts at the same places. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { h } from "preact";
import { className, percent } from "../page/format.js";
import { paletteOf } from "../fleet/colours.js";
import { fleet as data, follow, hostOf } from "../fleet/fleet_data.js";
import { NONE } from "../fleet/fleet_file.js";
import { groupHosts } from "../fleet/groups.js";
import { layOut } from "../fleet/layout.js";
import { useIsDark } from "../parts/scheme.js";
import { MapPainter } from "../fleet/map_painter.js";
import { SetName } from "./set_editor.js";

/** @typedef {import("../fleet/fleet_file.js").Fleet} Fleet */

const NO_LABELS = /** @type {string[]} */ ([]);

/** @param {{comparison: any, resourceClass: string}} props */
export function ShareMaps({ comparison, resourceClass }) {
  useEffect(follow, []);
  const present = data.value;
  const hosts = /** @type {string[]} */ (comparison.hosts);
  const [at, setAt] = useState(-1);
  const groups = useMemo(() => {
    const fleet = placed(hosts, present);
    return groupHosts(fleet, "zone", (host) => hosts[host] ?? "");
  }, [hosts, present?.generation]);
  // Not again when the pointer moves: the maps would be painted anew.
  const maps = useMemo(
    () =>
      comparison.sets.map((/** @type {any} */ set, /** @type {number} */ number) => {
        const spread = set.classes.find((/** @type {any} */ each) => each.resource_class === resourceClass);
        return { name: set.name, number, spread, shares: sharesOf(spread, hosts.length) };
      }),
    [comparison, resourceClass],
  );
  const shown = maps.map(
    (/** @type {any} */ map) =>
      `${map.name} ${map.shares[at] === NONE ? "none" : percent((map.shares[at] ?? 0) / 1000)}`,
  );
  return h(
    "div",
    {},
    h(
      "div",
      { class: "share-maps" },
      maps.map((/** @type {any} */ map) =>
        h(
          "figure",
          { key: map.number },
          h("figcaption", {}, h(SetName, { at: map.number, name: map.name })),
          h(ShareMap, {
            shares: map.shares,
            groups,
            hosts,
            at,
            onPoint: setAt,
            label: `${className(resourceClass)} by host under ${map.name}: mean ${percent(map.spread?.mean ?? 0)}, from ${percent(
              map.spread?.least ?? 0,
            )} to ${percent(map.spread?.most ?? 0)}. Arrow keys move from host to host.`,
          }),
        ),
      ),
    ),
    h(
      "p",
      { class: "second share-line", "aria-live": "polite" },
      at >= 0
        ? `${hosts[at]}: ${shown.join(" · ")}`
        : "Point at a host to compare its share. Light is empty, and dark is full; on a dark page it is the reverse.",
    ),
  );
}

/** @param {any} spread @param {number} hosts */
function sharesOf(spread, hosts) {
  const shares = new Uint16Array(hosts).fill(NONE);
  spread?.shares.forEach((/** @type {number | null} */ share, /** @type {number} */ host) => {
    if (share !== null) shares[host] = Math.min(share, NONE - 1);
  });
  return shares;
}

/** The hosts of a comparison with the places of the present fleet; other hosts have no zone. @param {string[]} hosts @param {Fleet | null} present @returns {Fleet} */
function placed(hosts, present) {
  const places = [...(present?.places ?? []), { zone: "", aggregates: [] }];
  const racks = [...(present?.racks ?? []), ""];
  const rows = hosts.map((name) => (present ? hostOf(name) : undefined));
  const pick = (/** @type {ArrayLike<number> | undefined} */ column, /** @type {number} */ otherwise) =>
    Uint32Array.from(rows, (row) => (row === undefined ? otherwise : (column?.[row] ?? otherwise)));
  return {
    generation: present?.generation ?? "",
    position: 0,
    hosts: hosts.length,
    classes: [],
    shares: [],
    instances: new Uint16Array(hosts.length),
    states: new Uint8Array(hosts.length),
    reported: new Uint32Array(hosts.length),
    place: pick(present?.place, places.length - 1),
    places,
    rack: pick(present?.rack, racks.length - 1),
    racks,
    kind: new Uint16Array(hosts.length),
    kinds: [{}],
    aggregates: [],
  };
}

/**
 * @param {{
 *   shares: Uint16Array, groups: import("../fleet/layout.js").Group[], hosts: string[], at: number,
 *   onPoint: (host: number) => void, label: string,
 * }} props
 */
function ShareMap({ shares, groups, hosts, at, onPoint, label }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const painter = useRef(/** @type {MapPainter | null} */ (null));
  const [size, setSize] = useState({ width: 0, height: 0, ratio: 1 });
  const isDark = useIsDark();
  const palette = useMemo(() => paletteOf(isDark), [isDark]);
  useEffect(() => {
    painter.current = new MapPainter(/** @type {HTMLCanvasElement} */ (canvas.current));
    const element = /** @type {HTMLDivElement} */ (box.current);
    const observer = new ResizeObserver(() => {
      const ratio = devicePixelRatio || 1;
      setSize({
        width: Math.round(element.clientWidth * ratio),
        height: Math.round(element.clientHeight * ratio),
        ratio,
      });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      painter.current?.stop();
    };
  }, []);
  const order = useMemo(() => groups.flatMap((group) => group.blocks.flatMap((block) => [...block.hosts])), [groups]);
  const layout = useMemo(
    () => (size.width ? layOut(groups, { ...size, hosts: hosts.length }) : null),
    [groups, size.width, size.height, size.ratio],
  );
  useEffect(() => {
    const [element, map] = [canvas.current, painter.current];
    if (!layout || !element || !map) return;
    element.width = size.width;
    element.height = size.height;
    map.view = { zoom: Math.min(1, size.height / layout.height), x: 0, y: 0 };
    const fleet = { ...placed(hosts, null), shares: [shares] };
    const paint = (/** @type {number} */ host) => {
      const share = shares[host] ?? NONE;
      if (share === NONE) return palette.none;
      return share > 1000 ? palette.over : /** @type {number} */ (palette.table[share]);
    };
    map.use(layout, fleet, paint, palette, (host) => hosts[host] ?? "", NO_LABELS);
  }, [layout, shares, palette, size]);
  useEffect(() => {
    if (!painter.current) return;
    painter.current.cursor = at;
    painter.current.draw();
  }, [at, layout]);
  /** @param {PointerEvent} event */
  const point = (event) => {
    const ratio = devicePixelRatio || 1;
    onPoint(painter.current?.hostAt(event.offsetX * ratio, event.offsetY * ratio) ?? -1);
  };
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = at < 0 ? 0 : (order.indexOf(at) + step + order.length) % order.length;
    onPoint(order[next] ?? -1);
  };
  return h(
    "div",
    { class: "share-map", ref: box },
    h("canvas", {
      ref: canvas,
      role: "img",
      tabIndex: 0,
      "aria-label": label,
      onPointerMove: point,
      onPointerDown: point,
      onPointerLeave: () => onPoint(-1),
      onKeyDown: move,
    }),
  );
}
