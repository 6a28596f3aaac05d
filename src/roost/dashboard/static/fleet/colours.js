/** Colours of the heat map: a scale that is even for all kinds of sight, and colours of states. */

const LIGHT = "#ebf3e4 #cee9d0 #aadfc6 #74c9be #38b1bd #0a91b3 #0570a5 #035591 #0f3b78 #152a61 #151c4a".split(" ");
const DARK = "#1f2638 #24314e #273c64 #284e7b #236292 #197ca2 #1896ad #37b2b5 #60cdba #a0e4b2 #ddf6b4".split(" ");

/**
 * @typedef {object} Palette
 * @property {boolean} isDark
 * @property {string[]} scale eleven colours from 0 to 100 %
 * @property {Uint32Array} table 1,001 pixels from 0 to 1000 thousandths
 * @property {string} background
 * @property {string} ink
 * @property {number} none
 * @property {number} over
 * @property {number} down
 * @property {number} draining
 * @property {number} disabled
 */

/** @param {string} hex @returns {[number, number, number]} */
export function rgbOf(hex) {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** A pixel of a canvas: bytes red, green, blue, alpha in memory order. @param {number[]} rgb */
export const pixelOf = ([red = 0, green = 0, blue = 0]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** The colour of a share between two steps of the scale. @param {string[]} scale @param {number} share from 0 to 1 @returns {number[]} */
export function mix(scale, share) {
  const at = Math.max(0, Math.min(1, share)) * (scale.length - 1);
  const low = Math.min(Math.floor(at), scale.length - 2);
  const from = rgbOf(/** @type {string} */ (scale[low]));
  const to = rgbOf(/** @type {string} */ (scale[low + 1]));
  return from.map((value, channel) => Math.round(value + ((to[channel] ?? 0) - value) * (at - low)));
}

/** @param {boolean} isDark @returns {Palette} */
export function paletteOf(isDark) {
  const scale = isDark ? DARK : LIGHT;
  const table = Uint32Array.from({ length: 1001 }, (_, at) => pixelOf(mix(scale, at / 1000)));
  const pixel = (/** @type {string} */ hex) => pixelOf(rgbOf(hex));
  return isDark
    ? {
        isDark,
        scale,
        table,
        background: "#15181d",
        ink: "#e7eaee",
        none: pixel("#15181d"),
        over: pixel("#ff6a3d"),
        down: pixel("#ff6a3d"),
        draining: pixel("#ffb02e"),
        disabled: pixel("#7d8089"),
      }
    : {
        isDark,
        scale,
        table,
        background: "#ffffff",
        ink: "#1c2127",
        none: pixel("#ffffff"),
        over: pixel("#d1350f"),
        down: pixel("#d1350f"),
        draining: pixel("#e8930c"),
        disabled: pixel("#8d8f96"),
      };
}

/** A pixel on its way to the background: hosts that a search does not name. @param {number} pixel @param {number} background @param {number} part that stays */
export function fade(pixel, background, part) {
  let result = 255 << 24;
  for (const shift of [0, 8, 16]) {
    const from = (background >> shift) & 255;
    result |= Math.round(from + (((pixel >> shift) & 255) - from) * part) << shift;
  }
  return result >>> 0;
}

/** @param {number} pixel */
export const cssOf = (pixel) => `rgb(${pixel & 255},${(pixel >> 8) & 255},${(pixel >> 16) & 255})`;
