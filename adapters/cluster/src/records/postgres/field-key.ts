import type { Scalar } from "@portico/adapters/records/field-path";

/** Bytes of a key in indexes: eight of them and the longest ID just fit into PostgreSQL's limit. */
export const HEAD_BYTES = 128;

const NUMBER = 1;
const TEXT = 2;

/**
 * A value as bytes that sort in the port's order: missing values, then numbers (false as 0, true as 1), then texts. The same as
 * `_field_key` in the database.
 */
export function fieldKey(value: Scalar): Buffer {
  if (value === null) return Buffer.alloc(0);
  if (typeof value === "string") return Buffer.concat([Buffer.of(TEXT), Buffer.from(value)]);
  const key = Buffer.alloc(9, NUMBER);
  // -0 and 0 are the same number.
  key.writeDoubleBE(Number(value) + 0, 1);
  const isNegative = key[1]! >= 0x80;
  // The bits of positive numbers sort correctly. Those of negative numbers sort in reverse.
  if (isNegative) for (let at = 1; at < key.length; at++) key[at] = ~key[at]! & 0xff;
  else key[1]! |= 0x80;
  return key;
}

/** The part of a key that its column holds. */
export function headOf(key: Buffer): Buffer {
  return key.subarray(0, HEAD_BYTES);
}

/** Whether different keys may have the same head. */
export function isLong(key: Buffer): boolean {
  return key.length >= HEAD_BYTES;
}

/** The whole key of a record's field, as an expression. Reading it parses the record. */
export function keySql(schema: string, field: string): string {
  return `"${schema}"."_field_key"(value, '${pathSql(field)}')`;
}

/** The JSON type of a record's field, as an expression. */
export function kindSql(schema: string, field: string): string {
  return `json_typeof("${schema}"."_field"(value, '${pathSql(field)}'))`;
}

/**
 * The functions that read a field from a record's text. The database does this itself, so that keys do not depend on the version
 * of the app, and an index can be declared when records already exist.
 */
export function fieldFunctionsSql(schema: string): string {
  // PostgreSQL refuses a document with U+0000 or an unpaired surrogate. Indexed fields never contain them, so any other character
  // may replace them. Pairs of backslashes are handled first.
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

/** A field path contains only letters, digits, `_` and dots, so it needs no quoting. */
function pathSql(field: string): string {
  return `{${field.replaceAll(".", ",")}}`;
}
