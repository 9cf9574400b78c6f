import { createRequire } from "node:module";
import type * as Yaml from "yaml";
import type { Alias, Node, Scalar } from "yaml";
import { DEFINITION_BYTES, DOCUMENT_CHARACTERS, DOCUMENT_DEPTH, DOCUMENT_VALUES, PROBLEMS_TOLD } from "./definition-limits.ts";
import { type DefinitionProblem, type Path, toJsonPath } from "./definition-problem.ts";
import { setOwn } from "../expressions/set-own.ts";

/** A document as JSON, with the positions of its values in the text. */
export interface Source {
  readonly value: unknown;
  /** A problem at a path. Its position is that of the value, or of the nearest existing parent. */
  problem(path: Path, message: string): DefinitionProblem;
  /** A problem at a path, with the position of the key. */
  keyProblem(path: Path, message: string): DefinitionProblem;
  /** A problem at a path, with the position of a character in the text at the path. */
  textProblem(path: Path, offset: number, message: string): DefinitionProblem;
}

interface Location {
  readonly start: number;
  readonly key?: number | undefined;
  readonly scalar?: Scalar | undefined;
  readonly children?: ReadonlyMap<string | number, Location> | undefined;
}

const load = createRequire(import.meta.url);
/** The library loads slowly, so services without definitions do not load it. */
let loaded: typeof Yaml | undefined;
const yaml = (): typeof Yaml => (loaded ??= load("yaml") as typeof Yaml);

const STRANGE_TAG = "Tags other than YAML's own core ones have no meaning here";
const CORE_TAG = /^(?:!|tag:yaml\.org,2002:(?:map|seq|str|null|bool|int|float))$/;

const YAML_OPTIONS = {
  version: "1.2",
  schema: "core",
  strict: true,
  // Duplicate keys are checked here. The parser compares each key with all earlier keys, which takes minutes for many keys.
  uniqueKeys: false,
  stringKeys: false,
  logLevel: "silent",
  prettyErrors: false,
  merge: false,
} as const;

/**
 * Read a YAML 1.2 (or JSON) document as JSON. Never throws. The problems are those of the syntax, not of the definition. `isStored` is
 * described at `DefinitionText`.
 */
export function readSource(
  text: string,
  { isStored = false }: { readonly isStored?: boolean } = {},
): { readonly source: Source } | { readonly problems: readonly DefinitionProblem[] } {
  const { LineCounter, parseAllDocuments } = yaml();
  const lines = new LineCounter();
  const at = (offset: number, path: Path, message: string): DefinitionProblem => {
    const { line, col } = lines.linePos(Math.max(0, Math.min(offset, text.length)));
    return { line: Math.max(1, line), column: Math.max(1, col), path: toJsonPath(path), message };
  };
  if (Buffer.byteLength(text) > DEFINITION_BYTES) {
    return { problems: [{ line: 1, column: 1, path: "$", message: "A definition is at most 1 MiB of text" }] };
  }
  if (isNestedTooDeep(text)) return { problems: [{ line: 1, column: 1, path: "$", message: TOO_DEEP }] };
  const problems: DefinitionProblem[] = [];
  const reading = new Reading(isStored, (offset, path, message) => {
    if (problems.length < PROBLEMS_TOLD) problems.push(at(offset, path, message));
  });
  try {
    const parsed = parseAllDocuments(text, { ...YAML_OPTIONS, lineCounter: lines });
    const documents = Array.isArray(parsed) ? parsed : [];
    for (const { errors, warnings } of documents) {
      // The parser can report a problem at every character.
      for (const { pos, message, code } of [...errors, ...warnings].slice(0, PROBLEMS_TOLD - problems.length)) {
        problems.push(at(pos[0], [], sentence(code, message)));
      }
    }
    const second = documents[1];
    if (second) problems.push(at(second.range[0], [], "A file must contain one definition: this is its second document"));
    const contents = documents[0]?.contents;
    if (!contents && problems.length === 0) problems.push(at(0, [], "The document is empty"));
    if (!contents || problems.length > 0) return { problems: problems.slice(0, PROBLEMS_TOLD) };
    const { value, location } = reading.read(contents as Node, [], undefined);
    return problems.length > 0 ? { problems } : { source: createSource(text, value, location, at) };
  } catch (cause) {
    if (problems.length > 0) return { problems };
    // Deep nesting exhausts the stack of the parser itself.
    const message = cause instanceof RangeError ? TOO_DEEP : "The document cannot be read";
    return { problems: [{ line: 1, column: 1, path: "$", message }] };
  }
}

const TOO_DEEP = "The document is nested too deeply";
const BRACKETS_OPEN = 2000;

/** Excessive nesting of brackets, for which the parser needs seconds before it fails. */
function isNestedTooDeep(text: string): boolean {
  let open = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x5b || code === 0x7b) open++;
    else if (code === 0x5d || code === 0x7d) open--;
    if (open > BRACKETS_OPEN) return true;
  }
  return false;
}

/** One walk over the parser's result. */
class Reading {
  #values = 0;
  #characters = 0;
  readonly #isStored: boolean;
  readonly #report: (offset: number, path: Path, message: string) => void;
  readonly #anchors = new Map<string, Node>();
  readonly #open = new Set<Node>();

  constructor(isStored: boolean, report: (offset: number, path: Path, message: string) => void) {
    this.#isStored = isStored;
    this.#report = report;
  }

  read(node: Node | null, path: Path, key: number | undefined): { value: unknown; location: Location } {
    const start = node?.range?.[0] ?? key ?? 0;
    const none = { value: null, location: { start, key } };
    if (++this.#values > DOCUMENT_VALUES) {
      if (this.#values === DOCUMENT_VALUES + 1) this.#report(start, path, `The document has more than ${DOCUMENT_VALUES} values`);
      return none;
    }
    if (path.length > DOCUMENT_DEPTH) {
      this.#report(start, path, `Values may be nested at most ${DOCUMENT_DEPTH} levels deep`);
      return none;
    }
    if (node === null) return none;
    if (yaml().isAlias(node)) return this.#followed(node, path, key);
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    if (node.tag !== undefined && !CORE_TAG.test(node.tag)) this.#report(start, path, STRANGE_TAG);
    if (yaml().isScalar(node)) return { value: this.#scalar(node, path), location: { start, key, scalar: node } };
    this.#open.add(node);
    const read = this.#collection(node, path, start, key);
    this.#open.delete(node);
    return read;
  }

  #collection(node: Node, path: Path, start: number, key: number | undefined): { value: unknown; location: Location } {
    const children = new Map<string | number, Location>();
    if (yaml().isSeq(node)) {
      const value = node.items.map((item, index) => {
        const read = this.read(item as Node | null, [...path, index], undefined);
        children.set(index, read.location);
        return read.value;
      });
      return { value, location: { start, key, children } };
    }
    const value: Record<string, unknown> = {};
    for (const pair of yaml().isMap(node) ? node.items : []) {
      if (!yaml().isPair(pair)) continue;
      const name = this.#key(pair.key as Node | null, path);
      if (name === undefined) continue;
      const keyStart = (pair.key as Node).range?.[0];
      if (!this.#hasRoom(name, keyStart ?? start, path)) break;
      if (isMergeKey(pair.key) && !this.#isStored) this.#report(keyStart ?? start, [...path, name], MERGE_KEY);
      if (children.has(name)) this.#report(keyStart ?? start, [...path, name], `Duplicate key "${name}"`);
      const read = this.read(pair.value as Node | null, [...path, name], keyStart);
      children.set(name, read.location);
      setOwn(value, name, read.value);
    }
    return { value, location: { start, key, children } };
  }

  #key(key: Node | null, path: Path): string | undefined {
    if (yaml().isScalar(key) && key.value !== null)
      return typeof key.value === "string" ? key.value : (key.source ?? String(key.value));
    this.#report(key?.range?.[0] ?? 0, path, "A key must be a string");
    return undefined;
  }

  /** False if there are too many. */
  #hasRoom(text: string, start: number, path: Path): boolean {
    const before = this.#characters;
    this.#characters += text.length;
    const most = this.#isStored ? Number.POSITIVE_INFINITY : DOCUMENT_CHARACTERS;
    if (this.#characters <= most) return true;
    if (before <= most) this.#report(start, path, `The document has more than ${most} characters`);
    return false;
  }

  #scalar(node: Scalar, path: Path): unknown {
    const { value } = node;
    if (typeof value === "string" && !this.#hasRoom(value, node.range?.[0] ?? 0, path)) return null;
    if (value === undefined) return null;
    if (typeof value === "number" && !Number.isFinite(value)) {
      this.#report(node.range?.[0] ?? 0, path, "JSON cannot represent this number");
      return null;
    }
    if (typeof value === "number" && !this.#isStored) {
      const fault = lostDigits(value, node.source ?? "");
      if (fault !== undefined) this.#report(node.range?.[0] ?? 0, path, fault);
    }
    return value;
  }

  #followed(alias: Alias, path: Path, key: number | undefined): { value: unknown; location: Location } {
    const start = alias.range?.[0] ?? 0;
    const target = this.#anchors.get(alias.source);
    if (target && !this.#open.has(target)) {
      const { value, location } = this.read(target, path, key);
      // Reported at the alias, because this use is wrong.
      return { value, location: { start, key, children: location.children } };
    }
    this.#report(
      start,
      path,
      target ? "An alias cannot refer to a value that contains it" : "No anchor with this name precedes the alias",
    );
    return { value: null, location: { start, key } };
  }
}

const MERGE_KEY = "YAML 1.2 has no merge key: write the keys here, or quote `<<` if it is the name of a key";
const LARGE_NUMBER = "A whole number beyond ±(2^53 - 1) would lose digits: write it as a text, in quotes";
const LEADING_ZERO = "A number with a leading zero would lose it: write it as a text, in quotes";
const WHOLE = /^(?:[-+]?\d+|0x[\da-f]+|0o[0-7]+)$/i;

/** Why a number is not the one that is written. */
function lostDigits(value: number, written: string): string | undefined {
  if (/^[-+]?0\d/.test(written)) return LEADING_ZERO;
  return Number.isInteger(value) && !Number.isSafeInteger(value) && WHOLE.test(written) ? LARGE_NUMBER : undefined;
}

/** `<<` without quotation marks. YAML 1.1 replaced it by the keys of its value. */
function isMergeKey(key: unknown): boolean {
  return yaml().isScalar(key) && key.value === "<<" && key.type === "PLAIN";
}

function createSource(
  text: string,
  value: unknown,
  root: Location,
  at: (offset: number, path: Path, message: string) => DefinitionProblem,
): Source {
  const find = (path: Path): { location: Location; isExact: boolean } => {
    let location = root;
    for (const key of path) {
      const next = location.children?.get(key);
      if (!next) return { location, isExact: false };
      location = next;
    }
    return { location, isExact: true };
  };
  return {
    value,
    problem(path, message) {
      const { location, isExact } = find(path);
      // A missing key is reported at the key of its parent.
      return at(isExact ? location.start : (location.key ?? location.start), path, message);
    },
    keyProblem(path, message) {
      const { location } = find(path);
      return at(location.key ?? location.start, path, message);
    },
    textProblem(path, offset, message) {
      const { location } = find(path);
      return at(offsetInText(text, location, offset), path, message);
    },
  };
}

/** The position of a character of a scalar's value. It is exact if the text contains the value literally, and per line in a block. Otherwise it is the start. */
function offsetInText(text: string, { scalar, start }: Location, offset: number): number {
  const range = scalar?.range;
  if (!range || typeof scalar.value !== "string") return start;
  const written = text.slice(range[0], range[1]);
  const whole = written.indexOf(scalar.value);
  if (whole >= 0) return range[0] + whole + offset;
  if (scalar.type !== "BLOCK_LITERAL") return start;
  const before = scalar.value.slice(0, offset);
  const row = before.split("\n").length;
  const lines = written.split("\n");
  const line = scalar.value.split("\n")[row - 1] ?? "";
  const column = lines[row]?.indexOf(line) ?? -1;
  if (column < 0) return start;
  const above = lines.slice(0, row).reduce((sum, each) => sum + each.length + 1, 0);
  return range[0] + above + column + (before.length - (before.lastIndexOf("\n") + 1));
}

/** The parser's message without quotations from the text. */
function sentence(code: string, message: string): string {
  if (code === "TAG_RESOLVE_FAILED") return STRANGE_TAG;
  const [first = ""] = message.split("\n");
  const words = first.replace(/ at line \d+, column \d+:?$/, "");
  const quoted = words.endsWith('"') ? words.indexOf(': "') : -1;
  return `Invalid YAML: ${quoted < 0 ? words : words.slice(0, quoted)}`;
}
