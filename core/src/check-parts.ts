import { foundKind } from "./config/problem.ts";

/** The parts of a preset, as they may be given without types. */
interface GivenParts {
  readonly name: string;
  readonly extends?: unknown;
  readonly adapters?: readonly unknown[];
  readonly plugins?: readonly unknown[];
}

/** Throws a sentence for a part of a preset that was not called, not spread, or is in the wrong list. */
export function checkParts(preset: GivenParts): void {
  if (typeof preset === "function") throw new TypeError("A preset was not called: write local(options), not local");
  const { name, adapters = [], plugins = [] } = preset;
  if (typeof preset.extends === "function")
    throw new TypeError(`Preset "${name}" extends a preset that was not called: write extends: local(options)`);
  adapters.forEach((part, at) => checkPart(name, "adapters", at, part));
  plugins.forEach((part, at) => checkPart(name, "plugins", at, part));
}

const KINDS = {
  adapters: { one: "an adapter", mark: "port", other: "a plugin: list it in plugins" },
  plugins: { one: "a plugin", mark: "contract", other: "an adapter: list it in adapters" },
} as const;

function checkPart(preset: string, list: keyof typeof KINDS, at: number, given: unknown): void {
  const place = `Preset "${preset}", ${list}[${at}]`;
  const { one, mark, other } = KINDS[list];
  if (typeof given === "function") {
    const named = given.name === "" ? one : `"${given.name}"`;
    throw new TypeError(`${place}: ${named} was not called. Call the function with its options, or with {}`);
  }
  if (Array.isArray(given)) throw new TypeError(`${place} is a list. Spread it: ...${list}`);
  const spec: unknown = typeof given === "object" && given !== null && "spec" in given ? given.spec : undefined;
  if (typeof spec !== "object" || spec === null) throw new TypeError(`${place} is ${foundKind(given)}, not ${one}`);
  if (mark in spec) return;
  throw new TypeError(`${place} is ${"port" in spec || "contract" in spec ? other : `${foundKind(given)}, not ${one}`}`);
}
