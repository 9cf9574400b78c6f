import { Readable } from "node:stream";
import type { Secret } from "../config/secret.ts";
import { type Adapter, defineAdapter } from "../grammar/adapter.ts";
import type { Given, Needs } from "../grammar/port.ts";
import type { Scope } from "../grammar/scope.ts";
import { BodyCut, BodyTooLarge, readBody } from "../http/body.ts";
import { orAborted } from "../kit/clock.ts";
import { hasMoreLevels, parseJson } from "../kit/parse-json.ts";
import { type Clock, clock } from "../ports/clock.ts";
import { type Ids, ids } from "../ports/ids.ts";
import { type ModelAnswer, type ModelCall, type ModelProvider, ModelTimeout, ModelUnreachable, models } from "../ports/models.ts";
import { type AnswerPiece, eventsOf } from "./events-of-pieces.ts";
import { isJsonObject } from "./json.ts";
import { messagesAnswer, refusal } from "./messages-answer.ts";
import type { ModelError, ModelErrorKind, ModelEvent } from "./model-events.ts";
import { type ModelQuestion, type QuestionAbility, readQuestion } from "./read-question.ts";
import { ConversionRefused } from "./request/fields.ts";

/** What `defineModelProvider` takes. */
export interface ModelProviderSpec<N extends Needs, O> {
  /** `models/` and the technology. */
  readonly name: string;
  /** Ports that the provider is built on. `clock` and `ids` are given without being named. */
  readonly needs?: N;
  /** Opens the provider. `scope.onClose` undoes what it opens. */
  open(given: Given<N> & ProviderPorts, options: O, scope: Scope): OwnProvider | Promise<OwnProvider>;
}

/** The ports that every own provider is given. */
export interface ProviderPorts {
  readonly clock: Clock;
  readonly ids: Ids;
}

/** A provider with a protocol of its own. */
export interface OwnProvider {
  /** The id of the provider's configuration. */
  readonly id: string;
  /** The value of `owned_by` in the list of models. Default: the id. */
  readonly type?: string;
  /** Names of its models, or a function that asks for them. */
  readonly models: readonly string[] | ((signal?: AbortSignal) => Promise<readonly string[]>);
  /** Maximum tokens of a request to a model, if the provider knows them. */
  contextTokens?(model: string, signal?: AbortSignal): Promise<number | undefined>;
  /** Whether its models are agents of this instance (`ModelProvider.servesAgents`). Default: false. */
  readonly servesAgents?: boolean;
  /** What it carries beside text. A request with anything else is refused, and the refusal names the field. Default: nothing. */
  readonly takes?: readonly QuestionAbility[];
  /** Values that no text may show: the credential and the address. Read again for each text. Values under 8 characters are ignored. */
  readonly secrets?: readonly (Secret | string)[];
  /** Milliseconds without a piece of an answer after which a call fails. Default: 10 minutes. */
  readonly silenceMs?: number;
  /**
   * One call of the model: yields its answer in pieces, of which texts are the simplest. The answer ends with the function. It may throw
   * `ModelRefusal`, `ports.ModelUnreachable`, `ports.ModelTimeout` and the signal's reason. Errors of Node.js' connections and of `fetch`
   * count as `ModelUnreachable`, and those of `JSON.parse`, `readLines` and valibot as an invalid answer. It must end soon after the signal aborts, which also happens when the reader of the answer leaves.
   */
  answer(question: ModelQuestion, signal: AbortSignal): AsyncIterable<AnswerPiece>;
}

/** Options of `ModelRefusal`. */
export interface ModelRefusalOptions extends ErrorOptions {
  /** The status of the answer. Default: by the kind of refusal. */
  readonly status?: number;
  /** When a later attempt may succeed. */
  readonly retryAfterMs?: number;
  /** False tells client libraries of both vendors not to send the request again by themselves, whatever the status. Default: they decide. */
  readonly isRepeatable?: boolean;
}

/** A model's service refuses a call. The caller gets the words, without the provider's secrets, and the status that fits the kind. */
export class ModelRefusal extends Error {
  override readonly name = "ModelRefusal";
  readonly kind: ModelErrorKind;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly isRepeatable: boolean | undefined;

  constructor(
    kind: ModelErrorKind,
    message: string,
    { status, retryAfterMs, isRepeatable, ...options }: ModelRefusalOptions = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.isRepeatable = isRepeatable;
  }
}

/** Bytes of a request, which is held in memory. The vendor's own limit is 32 MB (platform.claude.com/docs/en/api/errors). */
const REQUEST_BYTES = 32 * 1024 * 1024;
const REQUEST_LEVELS = 512;
const SILENCE_MS = 600_000;
/** Shorter values would occur by chance in ordinary text. */
const SHORTEST_SECRET = 8;

/**
 * Declares a provider with a protocol of its own. It shows itself as a provider of the Messages protocol, so that callers of both protocols and
 * agents can use it. The result is called with its options where a preset installs it.
 */
export function defineModelProvider<const N extends Needs = Record<never, never>, O = void>(
  spec: ModelProviderSpec<N, O>,
): (options: O) => Adapter<typeof models> {
  return defineAdapter({
    name: spec.name,
    port: models,
    needs: { ...spec.needs, clock, ids },
    open: async (given, options: O, scope) => ({
      ...createProvider(await spec.open(given as unknown as Given<N> & ProviderPorts, options, scope), given as ProviderPorts),
      upstreamProtocol: spec.name,
    }),
  });
}

/** The port's view of an own provider. */
export function createProvider(own: OwnProvider, given: ProviderPorts): ModelProvider {
  const { id, models: listed } = own;
  const listModels = async (signal?: AbortSignal) => [...new Set(typeof listed === "function" ? await listed(signal) : listed)];
  return {
    id,
    type: own.type ?? id,
    protocol: "messages",
    ...(own.servesAgents && { servesAgents: true }),
    listModels,
    ...(own.contextTokens && { contextTokens: (model: string, signal?: AbortSignal) => own.contextTokens!(model, signal) }),
    redact: (text) => redact(own, text),
    async send(call, signal) {
      const read = await readCall(own, call, signal);
      if ("refused" in read) return refusal(read.refused);
      return answerOf(own, read, given, signal);
    },
  };
}

type ReadCall = ReturnType<typeof readQuestion>;

/** Reads the whole request, and lets go of its stream in every case. */
async function readCall(
  { takes }: OwnProvider,
  { body, headers }: ModelCall,
  signal: AbortSignal,
): Promise<ReadCall | { readonly refused: ModelError }> {
  try {
    signal.throwIfAborted();
    // How long an upload may take is the matter of the server that receives it.
    const bytes = body instanceof Readable ? await orAborted(readBody(body, { limit: REQUEST_BYTES }), signal) : body;
    if (bytes.length > REQUEST_BYTES) return { refused: TOO_LARGE };
    const value = parsed(bytes);
    if (!isJsonObject(value)) return { refused: { kind: "invalid-request", message: "The request is not a JSON object" } };
    if (hasMoreLevels(value, REQUEST_LEVELS))
      return { refused: { kind: "invalid-request", message: "The request is nested too deeply" } };
    return readQuestion(value, takes, headers);
  } catch (error) {
    if (error instanceof ConversionRefused) return { refused: { kind: "invalid-request", message: error.message } };
    if (error instanceof BodyTooLarge) return { refused: TOO_LARGE };
    throw error instanceof BodyCut && error.cause ? error.cause : error;
  } finally {
    if (body instanceof Readable) body.destroy();
  }
}

const TOO_LARGE: ModelError = { kind: "too-large", message: "The request is larger than 32 MiB" };

/** Undefined for bytes that are not JSON. The parser's message quotes the text, so it is not kept. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

async function answerOf(
  own: OwnProvider,
  { question, dropped }: ReadCall,
  given: ProviderPorts,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  let refused: ModelRefusal | undefined;
  const leftOut = [...dropped];
  const shown = (text: string) => redact(own, text);
  async function* events(left: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
    try {
      for await (const event of eventsOf(own.answer(question, left), own.id, (fields) => leftOut.push(...fields))) {
        yield [event.type === "error" ? { ...event, error: { ...event.error, message: shown(event.error.message) } } : event];
      }
    } catch (error) {
      const failure = callFailure(error, own, signal);
      if (!isRefusal(failure)) throw failure;
      refused = failure;
      yield [{ type: "error", error: { kind: failure.kind, message: shown(failure.message) } }];
    }
  }
  const options = {
    id: given.ids.id("msg_"),
    model: question.model,
    isStream: question.isStream,
    clock: given.clock,
    silence: { ms: own.silenceMs ?? SILENCE_MS, message: `Provider "${own.id}" stopped answering` },
  };
  const answer = await messagesAnswer(events, options, signal);
  // A stream that has begun already tells the refusal at its end.
  if (!refused || answer.status === 200) return { ...answer, ...(leftOut.length > 0 && { dropped: leftOut }) };
  const { retryAfterMs, isRepeatable, status, kind, message } = refused;
  const headers = {
    ...(retryAfterMs !== undefined && { "retry-after": String(Math.ceil(retryAfterMs / 1000)) }),
    ...(isRepeatable !== undefined && { "x-should-retry": String(isRepeatable) }),
  };
  return refusal({ kind, message: shown(message) }, headers, status);
}

/** By its name, because a process may contain two copies of this package. */
function isRefusal(error: unknown): error is ModelRefusal {
  return error instanceof Error && error.name === "ModelRefusal" && "kind" in error;
}

/** The error of the port for an error of a connection, and a refusal for an invalid answer. Other errors are faults of the provider's code. */
function callFailure(error: unknown, { id }: OwnProvider, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (!(error instanceof Error)) return error;
  if (error.name === ModelUnreachable.name || error.name === ModelTimeout.name) return error;
  if (isInvalidAnswer(error)) return new ModelRefusal("upstream", `Provider "${id}" sent an invalid answer`, { cause: error });
  if (error.name === "TimeoutError") return new ModelTimeout(`Provider "${id}" did not answer in time`, { cause: error });
  return isLostConnection(error) ? new ModelUnreachable(`Provider "${id}" cannot be reached`, { cause: error }) : error;
}

/** Errors of `JSON.parse`, of valibot and of `readLines`. */
function isInvalidAnswer(error: Error): boolean {
  return error instanceof SyntaxError || error instanceof RangeError || error.name === "ValiError";
}

/** Errors of sockets have the name of a system call or a code of undici. Those of `fetch` are TypeErrors with such an error as their cause. */
function isLostConnection(error: Error): boolean {
  if (error instanceof TypeError) return error.message === "fetch failed" || error.message === "terminated";
  return (
    "syscall" in error ||
    ("code" in error && /^(?:E[A-Z]+|UND_ERR_\w+|ERR_TLS_\w+|ERR_STREAM_PREMATURE_CLOSE)$/.test(String(error.code)))
  );
}

function redact({ secrets = [] }: OwnProvider, text: string): string {
  return secrets
    .map((each) => (typeof each === "string" ? each : each.reveal()))
    .filter((each) => each.length >= SHORTEST_SECRET)
    .sort((a, b) => b.length - a.length)
    .reduce((shown, each) => shown.replaceAll(each, "***"), text);
}
