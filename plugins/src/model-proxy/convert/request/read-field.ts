import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import { ExactNumber } from "../exact-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";

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
    if (known.has(key)) continue;
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
