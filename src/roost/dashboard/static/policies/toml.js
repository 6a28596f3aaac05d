/** Settings as TOML, the form of a settings file: sections with numbers, texts, truth values and lists of them. */

/** @typedef {Record<string, Record<string, any>>} Sections */

const SECTION = /^\[\s*([\w-]+)\s*\]$/;
const PAIR = /^([\w-]+)\s*=\s*(.*)$/;

/** Write sections. @param {Sections} sections */
export function toToml(sections) {
  return Object.entries(sections)
    .filter(([, table]) => Object.keys(table).length)
    .map(([name, table]) => {
      const lines = Object.entries(table).map(([key, value]) => `${key} = ${valueText(value)}`);
      return `[${name}]\n${lines.join("\n")}\n`;
    })
    .join("\n");
}

/** @param {any} value @returns {string} */
function valueText(value) {
  if (Array.isArray(value)) return `[${value.map(valueText).join(", ")}]`;
  return JSON.stringify(value);
}

/**
 * Read sections; an error names its line.
 * @param {string} text
 * @returns {Sections}
 */
export function fromToml(text) {
  /** @type {Sections} */
  const sections = {};
  let table = /** @type {Record<string, any> | null} */ (null);
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const number = at + 1;
    let line = withoutComment(lines[at] ?? "").trim();
    if (!line) continue;
    const section = SECTION.exec(line);
    if (section) {
      table = sections[/** @type {string} */ (section[1])] ??= {};
      continue;
    }
    while (depth(line) > 0 && at + 1 < lines.length) {
      at += 1;
      line += ` ${withoutComment(lines[at] ?? "").trim()}`;
    }
    const pair = PAIR.exec(line);
    if (!pair) throw new Error(`Line ${number}: write NAME = VALUE, or a section such as [filter_scheduler].`);
    if (!table) throw new Error(`Line ${number}: begin with a section such as [filter_scheduler].`);
    const key = /** @type {string} */ (pair[1]);
    if (key in table) throw new Error(`Line ${number}: ${key} is set twice.`);
    table[key] = readValue(pair[2] ?? "", number);
  }
  return sections;
}

// A text in either quotes, a number, or a comma before the end of a list.
const PARTS = /"(?:\\.|[^"\\])*"|'[^']*'|[+-]?\d[\d_.eE+-]*|,\s*(?=\])/g;

/** @param {string} text @param {number} line */
function readValue(text, line) {
  try {
    return JSON.parse(text.replace(PARTS, jsonPart));
  } catch {
    throw new Error(
      `Line ${line}: ${text.slice(0, 60) || "nothing"} must be a number, "text", true, false or a list of them.`,
    );
  }
}

/** @param {string} part */
function jsonPart(part) {
  if (part.startsWith('"')) return part;
  if (part.startsWith("'")) return JSON.stringify(part.slice(1, -1));
  return part.startsWith(",") ? "" : part.replace(/_/g, "").replace(/^\+/, "");
}

/** The part of a line before its comment; a # within a text is none. @param {string} line */
function withoutComment(line) {
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const sign = line[at];
    if (quote) {
      if (sign === "\\" && quote === '"') at += 1;
      else if (sign === quote) quote = "";
    } else if (sign === '"' || sign === "'") quote = sign;
    else if (sign === "#") return line.slice(0, at);
  }
  return line;
}

/** How many lists are open at the end of a line. @param {string} line */
function depth(line) {
  const bare = line.replace(/"(\\.|[^"\\])*"|'[^']*'/g, "");
  return (bare.split("=").slice(1).join("=").match(/\[/g)?.length ?? 0) - (bare.match(/\]/g)?.length ?? 0);
}
