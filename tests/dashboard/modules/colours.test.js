import assert from "node:assert/strict";
import { test } from "node:test";
import { mix, paletteOf, pixelOf, rgbOf } from "../../../src/roost/dashboard/static/fleet/colours.js";

// Matrices of Machado, Oliveira and Fernandes (2009) for full protanopia, deuteranopia and tritanopia, on linear RGB.
const SIGHTS = {
  normal: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protan: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deutan: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  tritan: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};
const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);

/** Lightness, a and b of a colour in OKLab, as somebody sees it. */
function oklab(rgb, sight) {
  const [r, g, b] = rgb.map((value) => linear(value / 255));
  const m = SIGHTS[sight];
  const seen = [0, 3, 6].map((row) => Math.max(0, m[row] * r + m[row + 1] * g + m[row + 2] * b));
  const l = Math.cbrt(0.4122214708 * seen[0] + 0.5363325363 * seen[1] + 0.0514459929 * seen[2]);
  const s = Math.cbrt(0.2119034982 * seen[0] + 0.6806995451 * seen[1] + 0.1073969566 * seen[2]);
  const t = Math.cbrt(0.0883024619 * seen[0] + 0.2817188376 * seen[1] + 0.6299787005 * seen[2]);
  return [
    0.2104542553 * l + 0.793617785 * s - 0.0040720468 * t,
    1.9779984951 * l - 2.428592205 * s + 0.4505937099 * t,
    0.0259040371 * l + 0.7827717662 * s - 0.808675766 * t,
  ];
}
const distance = (one, other) => Math.hypot(...one.map((value, at) => value - other[at]));
const rgbOfPixel = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];

for (const isDark of [false, true]) {
  const palette = paletteOf(isDark);
  for (const sight of Object.keys(SIGHTS)) {
    test(`lightness moves one way along the scale: ${sight}, ${isDark ? "dark" : "light"}`, () => {
      const steps = palette.scale.map((hex) => oklab(rgbOf(hex), sight)[0]);
      for (const [at, lightness] of steps.slice(1).entries()) {
        const step = (isDark ? 1 : -1) * (lightness - steps[at]);
        assert.ok(step > 0.02, `step ${at} is ${step}`);
      }
    });
    test(`a host that is down stands out from the scale: ${sight}, ${isDark ? "dark" : "light"}`, () => {
      const down = oklab(rgbOfPixel(palette.down), sight);
      for (const hex of palette.scale) assert.ok(distance(down, oklab(rgbOf(hex), sight)) >= 0.14, hex);
    });
  }
}

test("the table has the colours of the scale at its steps", () => {
  const { scale, table } = paletteOf(false);
  for (const [at, hex] of scale.entries()) assert.equal(table[100 * at], pixelOf(rgbOf(hex)));
  assert.deepEqual(mix(["#000000", "#ffffff"], 0.5), [128, 128, 128]);
});
