/** Values that are written without quotes. All others are quoted, so that a value can never look like a separate line. */
const BARE = /^[\w./:@+~-]+$/;

interface LogLine {
  readonly level: string;
  readonly time: string;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

/** Formats one JSON log line for people: `12:03:04.123 WARN  401 POST model-proxy.messages 0.4ms …`. */
export function textLine(json: string): string {
  const { level, time, msg = "", ...fields } = JSON.parse(json) as LogLine;
  const start = `${time.slice("2030-01-01T".length, -1)} ${level.toUpperCase().padEnd(5)}`;
  return `${start} ${msg === "request" && "route" in fields ? requestText(fields) : `${line(msg)}${pairs(fields)}`}\n`;
}

function requestText(fields: Readonly<Record<string, unknown>>): string {
  const { status, method, route, ms, area: _area, ...rest } = fields;
  return `${text(status)} ${text(method)} ${text(route)} ${text(ms)}ms${pairs(rest)}`;
}

function pairs(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => ` ${text(name)}=${text(value)}`)
    .join("");
}

function text(value: unknown): string {
  return typeof value === "string" && BARE.test(value) ? value : JSON.stringify(value);
}

/** Messages come from the program, but may contain names that do not. */
function line(message: string): string {
  return message.replaceAll(/[\x00-\x1f\x7f\u2028\u2029]/g, " ");
}
