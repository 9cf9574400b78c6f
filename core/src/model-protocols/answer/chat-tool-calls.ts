import { upstreamFailure } from "../errors.ts";
import { isJsonObject, type Json, type JsonObject, writeExactly } from "../json.ts";
import { type Emit, toolCallLimit } from "./answer-reader.ts";

interface Call {
  /** Unknown until the upstream sends it. Some vendors send it late, some never. */
  id: string | undefined;
  /** It may come in pieces, so the call is announced with its first arguments. */
  name: string;
  /** Google's thought signature. */
  signature: string | undefined;
  /** Its number in the events; undefined until the call is announced. */
  number: number | undefined;
  /** Arguments that came before the call could be announced. */
  held: string;
  progress: JsonProgress;
  ended: boolean;
}

/**
 * Assembles the tool calls of a Chat Completions answer from their deltas. It supports the known deviations of vendors: interleaved calls,
 * two calls on one index, late, repeated, changing or missing ids, names in pieces or repeated, arguments as an object, and an empty object
 * before the arguments.
 */
export class ChatToolCalls {
  readonly #emit: Emit;
  readonly #current = new Map<number, Call>();
  /** The calls that have not ended, in the order of their first delta. */
  readonly #open = new Set<Call>();
  /** The call of the last delta. All other open calls are settled. */
  #last: Call | undefined;
  #begun = 0;
  #count = 0;
  #nameless = false;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** How many calls were announced. */
  get count(): number {
    return this.#count;
  }

  /** Whether a call has begun, although it may not be announced yet. */
  get hasBegun(): boolean {
    return this.#begun > 0;
  }

  /** Takes the `tool_calls` of one delta or of a whole message. */
  read(deltas: Json | undefined): void {
    if (!Array.isArray(deltas)) return;
    for (const [position, delta] of (deltas as readonly Json[]).entries()) {
      if (!isJsonObject(delta)) continue;
      // Some vendors leave out the index. The position in the list is used instead.
      this.#take(typeof delta.index === "number" ? delta.index : position, delta.id, delta.function, delta.extra_content);
    }
  }

  /** Takes a `function_call`, the older form of a single call without an id. */
  readLegacy(delta: Json | undefined): void {
    if (isJsonObject(delta)) this.#take(-1, undefined, delta);
  }

  /** Called when other content begins. Announces the calls that wait for an id, and ends the calls whose arguments are complete. */
  settle(): void {
    const call = this.#last;
    this.#last = undefined;
    if (call === undefined || call.ended) return;
    this.#announce(call);
    if (call.number !== undefined && call.progress.complete) this.#end(call);
  }

  /** Ends the answer. Returns false if a call has arguments but no name, and so cannot be forwarded. */
  close(): boolean {
    for (const call of this.#open) {
      this.#announce(call);
      this.#end(call);
    }
    return !this.#nameless;
  }

  #take(index: number, rawId: Json | undefined, rawFunction: Json | undefined, extra?: Json): void {
    const called: JsonObject = isJsonObject(rawFunction) ? rawFunction : {};
    const id = typeof rawId === "string" && rawId !== "" ? rawId : undefined;
    const name = typeof called.name === "string" ? called.name : "";
    const piece = argumentsText(called.arguments);

    const known = this.#current.get(index);
    const call = known !== undefined && !beginsAnother(known, id, name, piece) ? known : this.#begin(index, known);
    if (call === undefined || call.ended) return;
    if (call !== this.#last) this.settle();
    this.#last = call;

    call.id ??= id;
    call.signature ??= thoughtSignature(extra);
    if (call.number === undefined) {
      call.name = joinName(call.name, name);
      if (piece.trim() !== "" && isPlaceholder(call.held)) {
        call.held = "";
        call.progress = new JsonProgress();
      }
    }
    call.progress.push(piece);
    if (call.number === undefined) {
      call.held += piece;
      if (call.id !== undefined && call.held.trim() !== "" && !isPlaceholder(call.held)) this.#announce(call);
    } else if (piece !== "") {
      this.#emit({ type: "tool-arguments", call: call.number, json: piece });
    }
  }

  /** Undefined if the answer has too many calls. */
  #begin(index: number, before: Call | undefined): Call | undefined {
    const tooMany = toolCallLimit(this.#begun);
    if (tooMany !== undefined) {
      this.#emit(upstreamFailure(tooMany));
      return undefined;
    }
    this.#begun += 1;
    // The earlier call on this index cannot receive further deltas.
    if (before !== undefined && !before.ended) {
      this.#announce(before);
      this.#end(before);
    }
    const call: Call = {
      id: undefined,
      name: "",
      signature: undefined,
      number: undefined,
      held: "",
      progress: new JsonProgress(),
      ended: false,
    };
    this.#current.set(index, call);
    this.#open.add(call);
    return call;
  }

  #announce(call: Call): void {
    if (call.number !== undefined || call.name === "") return;
    call.number = this.#count;
    this.#count += 1;
    const { signature } = call;
    this.#emit({
      ...{ type: "tool-start", call: call.number, id: call.id ?? "", name: call.name },
      ...(signature !== undefined && { signature }),
    });
    if (call.held !== "") this.#emit({ type: "tool-arguments", call: call.number, json: call.held });
    call.held = "";
  }

  #end(call: Call): void {
    call.ended = true;
    this.#open.delete(call);
    this.#nameless ||= call.number === undefined && call.held !== "";
    if (call.number !== undefined) this.#emit({ type: "tool-end", call: call.number });
  }
}

/** Gemini 3 refuses a later request without it: ai.google.dev/gemini-api/docs/thought-signatures. */
function thoughtSignature(extra: Json | undefined): string | undefined {
  const google = isJsonObject(extra) ? extra.google : undefined;
  const signature = isJsonObject(google) ? google.thought_signature : undefined;
  return typeof signature === "string" && signature !== "" ? signature : undefined;
}

/** Whether a delta on the index of `call` begins another call. */
function beginsAnother(call: Call, id: string | undefined, name: string, piece: string): boolean {
  if (id !== undefined && id === call.id) return false;
  // Some vendors send a new id with every delta. So a different id begins a new call only with a name, or after complete arguments.
  if (id !== undefined && call.id !== undefined) return name !== "" || call.progress.complete;
  return name !== "" && piece !== "" && call.progress.complete;
}

/**
 * The name with the next delta's. Some vendors cut a name (continuedev/continue#5849), and some repeat the whole name with each delta
 * (NousResearch/hermes-agent#8259).
 */
function joinName(name: string, next: string): string {
  return next.startsWith(name) ? next : name + next;
}

/**
 * Whether these arguments may only announce others: relays of Bedrock send an empty object before the arguments (microsoft/autogen#7549).
 * They stay if nothing follows.
 */
export function isPlaceholder(json: string): boolean {
  return json.length < 16 && /^\s*\{\s*\}\s*$/.test(json);
}

/** The arguments as JSON text; vendors also send them as an object. */
function argumentsText(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return isJsonObject(value) ? writeExactly(value) : "";
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/**
 * Follows the text of one JSON object or array that arrives in pieces, to know when it is complete. Chat Completions has no event for
 * the end of a tool call, so the arguments must show it. The text is not validated: invalid JSON may count as complete, or as never
 * complete.
 */
export class JsonProgress {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #complete = false;

  push(piece: string): void {
    for (let at = 0; at < piece.length; at += 1) {
      const unit = piece.charCodeAt(at);
      if (this.#inString) this.#string(unit);
      else if (unit === QUOTE) this.#inString = true;
      else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) this.#depth += 1;
      else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) {
        this.#depth -= 1;
        if (this.#depth <= 0) this.#complete = true;
      }
    }
  }

  /** Whether the outermost bracket has been closed. */
  get complete(): boolean {
    return this.#complete;
  }

  #string(unit: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (unit === BACKSLASH) this.#escaped = true;
    else if (unit === QUOTE) this.#inString = false;
  }
}
