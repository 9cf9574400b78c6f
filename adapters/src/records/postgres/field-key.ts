import type { Scalar } from "../field-path.ts";

/** So much of a key stands in indexes: eight of them and the longest id just fit into what PostgreSQL takes there. */
export const HEAD_BYTES = 128;

const NUMBER = 1;
const TEXT = 2;

/**
 * A value as bytes that sort as the port's law orders values: nothing, then numbers (false as 0, true as 1), then texts. The same as
 * `_field_key` in the database.
 */
export function fieldKey(value: Scalar): Buffer {
  if (value === null) return Buffer.alloc(0);
  if (typeof value === "string") return Buffer.concat([Buffer.of(TEXT), Buffer.from(value)]);
  const key = Buffer.alloc(9, NUMBER);
  // Zero has two signs and is one number.
  key.writeDoubleBE(Number(value) + 0, 1);
  const isNegative = key[1]! >= 0x80;
  // The bits of positive numbers sort as they are, below all others'; those of negative ones sort backwards.
  if (isNegative) for (let at = 1; at < key.length; at++) key[at] = ~key[at]! & 0xff;
  else key[1]! |= 0x80;
  return key;
}

/** What of a key stands in its column. */
export function headOf(key: Buffer): Buffer {
  return key.subarray(0, HEAD_BYTES);
}

/** Whether other keys may have the same head. */
export function isLong(key: Buffer): boolean {
  return key.length >= HEAD_BYTES;
}

/** The whole key of a record's field, as an expression; reading it parses the record. */
export function keySql(schema: string, field: string): string {
  return `"${schema}"."_field_key"(value, '${pathSql(field)}')`;
}

/** What kind of JSON a record's field holds, as an expression. */
export function kindSql(schema: string, field: string): string {
  return `json_typeof("${schema}"."_field"(value, '${pathSql(field)}'))`;
}

/**
 * The functions that read a field out of a record's text. The database does this itself, so that a record has its keys whichever version
 * of an app wrote it, and an index can be declared when there are records.
 */
export function fieldFunctionsSql(schema: string): string {
  // PostgreSQL refuses a document with U+0000 or half a character anywhere in it. No indexed field holds those, so any other character
  // does in their place; first, pairs of backslashes are taken out of the way.
  return String.raw`
    CREATE FUNCTION "${schema}"."_field"(value text, path text[]) RETURNS json
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
    BEGIN
      IF strpos(value, '\u') = 0 THEN RETURN value::json #> path; END IF;
      RETURN regexp_replace(replace(value, '\\', '\u005c'), '\\u(0000|d[89a-f]..)', '\\u0001', 'g')::json #> path;
    END $body$;

    CREATE FUNCTION "${schema}"."_field_key"(value text, path text[]) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
    DECLARE
      field json := "${schema}"."_field"(value, path);
      kind text := json_typeof(field);
      bits bigint;
    BEGIN
      IF kind = 'string' THEN RETURN '\x0${TEXT}'::bytea || convert_to(field #>> '{}', 'UTF8'); END IF;
      IF kind = 'number' THEN
        bits := ('x' || encode(float8send((field #>> '{}')::float8), 'hex'))::bit(64)::bigint;
      ELSIF kind = 'boolean' THEN
        bits := ('x' || encode(float8send(CASE field #>> '{}' WHEN 'true' THEN 1 ELSE 0 END), 'hex'))::bit(64)::bigint;
      ELSE
        RETURN ''::bytea;
      END IF;
      RETURN '\x0${NUMBER}'::bytea || int8send(CASE WHEN bits < 0 THEN ~bits ELSE bits # '-9223372036854775808'::bigint END);
    END $body$;
  `;
}

/** A field path is of letters, digits, `_` and dots: nothing in it needs quotes. */
function pathSql(field: string): string {
  return `{${field.replaceAll(".", ",")}}`;
}
