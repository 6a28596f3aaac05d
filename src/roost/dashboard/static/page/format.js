/** Numbers, amounts and times in the words of the command line. */

// The formats of Intl take some 20 ms to load, before the first view.
const THOUSANDS = /\B(?=(?:\d{3})+(?!\d))/g;
const UNITS = /** @type {Record<string, string>} */ ({ MEMORY_MB: "MiB", DISK_GB: "GiB" });
const NAMES = /** @type {Record<string, string>} */ ({
  VCPU: "VCPU",
  MEMORY_MB: "Memory",
  DISK_GB: "Disk",
  PCPU: "PCPU",
});

/** `77824` → `77,824`; at most three decimals. @param {number} value */
export function count(value) {
  const [whole = "", part] = String(Math.round(1000 * value) / 1000).split(".");
  return whole.replace(THOUSANDS, ",") + (part ? `.${part}` : "");
}

/** `0.909` → `90.9%`. @param {number} share @param {number} [digits] */
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;

/** `lack a trait` → `Lack a trait`. @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** `1, "host"` → `1 host`. @param {number} number @param {string} noun @param {string} [many] */
export const counted = (number, noun, many = `${noun}s`) => `${count(number)} ${number === 1 ? noun : many}`;

/** The name of a resource class for people. @param {string} resourceClass */
export const className = (resourceClass) => NAMES[resourceClass] ?? resourceClass.replace(/^CUSTOM_/, "");

/** An amount with its unit. @param {string} resourceClass @param {number} value */
export function amount(resourceClass, value) {
  const unit = UNITS[resourceClass];
  return unit ? `${count(value)} ${unit}` : count(value);
}

/** Amounts by resource class: `2 VCPU, 4,096 MiB Memory`. @param {Record<string, number>} resources */
export const amountsText = (resources) =>
  Object.entries(resources)
    .map(([name, value]) => `${amount(name, value)} ${className(name)}`)
    .join(", ");

/** A large amount in its largest fitting unit: `598016 MiB` → `584 GiB`. @param {string} resourceClass @param {number} value */
export function shortAmount(resourceClass, value) {
  const units = { MEMORY_MB: ["MiB", "GiB", "TiB", "PiB"], DISK_GB: ["GiB", "TiB", "PiB"] }[resourceClass];
  if (!units) return count(value);
  let step = 0;
  while (value >= 1024 && step < units.length - 1) {
    value /= 1024;
    step += 1;
  }
  return `${value >= 100 || Number.isInteger(value) ? count(Math.round(value)) : value.toFixed(1)} ${units[step]}`;
}

/** The time of day, in the zone of the browser. @param {number} seconds since the epoch */
export const clock = (seconds) => new Date(1000 * seconds).toTimeString().slice(0, 8);

/** Date and time in UTC. @param {number} seconds since the epoch */
export const dateTime = (seconds) => `${new Date(1000 * seconds).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** `75` → `1 m`. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** The age of a time. @param {number} seconds since the epoch @param {number} [now] */
export const age = (seconds, now = Date.now() / 1000) => `${duration(now - seconds)} ago`;

/** `0.000196` → `196 µs`. @param {number} seconds */
export function shortTime(seconds) {
  if (seconds < 0.001) return `${Math.round(1e6 * seconds)} µs`;
  if (seconds < 1) return `${(1000 * seconds).toFixed(1)} ms`;
  return `${seconds.toFixed(2)} s`;
}

/** The time of today, else the date and the time, in the zone of the browser. @param {number} seconds since the epoch */
export function whenText(seconds) {
  const date = new Date(1000 * seconds);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock(seconds) : date.toLocaleString("sv-SE").slice(5, 16);
}

/** A text that sorts as people count: each number has its length before it. @param {string} name */
export function sortKey(name) {
  return name.toLowerCase().replace(/\d+/g, (digits) => {
    const plain = digits.replace(/^0+(?=\d)/, "");
    return String.fromCharCode(48 + Math.min(plain.length, 70)) + plain;
  });
}

/** Compares texts as people sort them: `host-9` comes before `host-10`. @param {string} left @param {string} right */
export function compareNames(left, right) {
  const [one, other] = [sortKey(left), sortKey(right)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The first and the last digits of a uuid. @param {string} uuid */
export const shortId = (uuid) => (uuid.length > 14 ? `${uuid.slice(0, 8)}…${uuid.slice(-4)}` : uuid);
