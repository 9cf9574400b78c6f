import { ExactNumber, isJsonObject, type Json, type JsonObject } from "../json.ts";

/** Reads one field of an untrusted body, or throws {@link ConversionRefused} with the field's path. */
export type FieldReader<T> = (value: Json | undefined, path: string) => T;

/** Optional fields: null counts as absent, in both protocols. */
export function readOptional<T>(value: Json | undefined, path: string, read: FieldReader<T>): T | undefined {
  return isAbsent(value) ? undefined : read(value, path);
}

export function isAbsent(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

export const readObject: FieldReader<JsonObject> = (value, path) => {
  if (!isJsonObject(value)) throw new ConversionRefused(path, "must be an object");
  return value;
};

export const readArray: FieldReader<readonly Json[]> = (value, path) => {
  if (!Array.isArray(value)) throw new ConversionRefused(path, "must be an array");
  return value;
};

export const readString: FieldReader<string> = (value, path) => {
  if (typeof value !== "string") throw new ConversionRefused(path, "must be a string");
  return value;
};

export const readBoolean: FieldReader<boolean> = (value, path) => {
  if (typeof value !== "boolean") throw new ConversionRefused(path, "must be true or false");
  return value;
};

export const readNumber: FieldReader<number> = (written, path) => {
  const value = written instanceof ExactNumber ? Number(written.digits) : written;
  if (typeof value !== "number" || !Number.isFinite(value)) throw new ConversionRefused(path, "must be a number");
  return value;
};

/** A whole number above zero. */
export const readCount: FieldReader<number> = (value, path) => {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 1) {
    throw new ConversionRefused(path, "must be a whole number above 0");
  }
  return value;
};

/** Reports the fields of an object that are not `known`. Values without effect (null, an empty list) are not reported. */
export function dropUnknown(object: JsonObject, known: ReadonlySet<string>, prefix: string, dropped: Dropped): void {
  for (const key in object) {
    if (known.has(key) || (key === "cache_control" && dropped.keepsCacheMarks)) continue;
    const value = object[key];
    if (isAbsent(value) || (Array.isArray(value) && value.length === 0)) continue;
    // Any block can have a cache mark. It is reported once, without its path.
    dropped.add(key === "cache_control" ? key : prefix + key);
  }
}

/** A word of the caller that an error may contain: the name of a tool or of a type, never other text. */
export function quoteName(value: Json | undefined): string {
  return typeof value === "string" && /^[\w.:-]{1,64}$/.test(value) ? `"${value}"` : "this one";
}

/** The request cannot be converted without changing its meaning. The caller gets 400, and the error names the field. */
export class ConversionRefused extends Error {
  override readonly name = "ConversionRefused";
  /** Path of the field in the caller's own body, for example `messages.2.content.0`. */
  readonly field: string;
  /** A code that the caller's client library knows. With it, the library retries in another form. */
  readonly details: JsonObject | undefined;

  constructor(field: string, reason: string, details?: JsonObject) {
    super(`${field}: ${reason}`);
    this.field = field;
    this.details = details;
  }
}

/** The names that may appear in the response header. Other names could break the header or make it too long. */
const NAMEABLE = /^[a-zA-Z0-9_.$-]{1,128}$/;
const NAMES = 64;
const UNNAMED = "(other)";

/** Collects the names of fields that were left out because dropping them keeps the meaning (header `x-portico-dropped`). */
export class Dropped {
  readonly #fields = new Set<string>();
  /** Whether the provider takes the caller's cache marks. */
  readonly keepsCacheMarks: boolean;

  constructor({ keepsCacheMarks = false }: { readonly keepsCacheMarks?: boolean } = {}) {
    this.keepsCacheMarks = keepsCacheMarks;
  }

  /**
   * Callers choose the names of unknown fields. So names that are unsafe in a header, and names beyond the 64th, are reported as
   * `(other)`.
   */
  add(field: string): void {
    this.#fields.add(this.#fields.size < NAMES && NAMEABLE.test(field) ? field : UNNAMED);
  }

  /** In the order of their first mention. */
  get fields(): readonly string[] {
    return [...this.#fields];
  }
}

/** A request in the other protocol. */
export interface ConvertedRequest {
  readonly body: JsonObject;
  /** Fields of the caller's body that were left out, named as `x-portico-dropped` says them. */
  readonly dropped: readonly string[];
}

/** With this code, the vendor's client library automatically sends its whole history instead. */
const THREADS_UNSUPPORTED: JsonObject = { error_code: "thread_unsupported_request", unsupported: ["thread"] };

/**
 * Refuses fields of Messages that change the answer and that Chat Completions cannot express. Fields that affect only cost, speed or
 * bookkeeping are dropped like unknown fields.
 * @throws ConversionRefused with the name of the field; for `mcp_servers`, also with the names of the servers.
 */
export function refuseMessagesOnly(body: JsonObject): void {
  const servers = readOptional(body.mcp_servers, "mcp_servers", readArray) ?? [];
  if (servers.length > 0) {
    const names = servers.map((server, index) => quoteName(readObject(server, `mcp_servers.${index}`).name));
    throw new ConversionRefused("mcp_servers", `${names.slice(0, 8).join(", ")}: only their own provider can call these servers`);
  }
  refusePresent(body, "container", "only its own provider has containers");
  if (body.inference_geo !== "global") refusePresent(body, "inference_geo", "this provider can't promise where it runs");
  if (!isAbsent(body.thread)) throw new ConversionRefused("thread", "this provider keeps no threads", THREADS_UNSUPPORTED);
}

/**
 * Refuses fields of Chat Completions that change the answer and that Messages cannot express.
 * @throws ConversionRefused with the name of the field.
 */
export function refuseChatOnly(body: JsonObject): void {
  if (!isAbsent(body.n) && body.n !== 1) throw new ConversionRefused("n", "this provider gives one answer per request");
  if (!isAbsent(body.logprobs) && body.logprobs !== false) refuse("logprobs", "this provider reports no probabilities");
  if (!isAbsent(body.top_logprobs) && body.top_logprobs !== 0) refuse("top_logprobs", "this provider reports no probabilities");
  const bias = readOptional(body.logit_bias, "logit_bias", readObject);
  if (bias && Object.keys(bias).length > 0) refuse("logit_bias", "this provider can't weigh tokens");
  const modalities = readOptional(body.modalities, "modalities", readArray) ?? [];
  if (modalities.some((modality: Json) => modality !== "text")) refuse("modalities", "this provider answers in text only");
  refusePresent(body, "audio", "this provider answers in text only");
  refusePresent(body, "web_search_options", "only its own provider can search the web");
  refusePresent(body, "moderation", "this provider has no moderation by request");
}

function refusePresent(body: JsonObject, field: string, reason: string): void {
  if (!isAbsent(body[field])) refuse(field, reason);
}

function refuse(field: string, reason: string): never {
  throw new ConversionRefused(field, reason);
}
