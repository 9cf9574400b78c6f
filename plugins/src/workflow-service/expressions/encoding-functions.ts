import { createHash, createHmac } from "node:crypto";
import { parseJson, withoutEnd } from "@portico/core";
import { toCelValue, Refused, toJson } from "./cel-value.ts";
import { chargeForText, chargeForValue, type FunctionGroup, type Spend } from "./library-function.ts";

type Octets = string | Uint8Array;

/** Base64, hexadecimal, URLs, JSON. */
export const encodingFunctions: FunctionGroup = {
  title: "Encodings",
  functions: [
    {
      usage: "base64.encode(VALUE)",
      summary: "Base64 of bytes, or of a text in UTF-8.",
      example: ["base64.encode('hello')", "aGVsbG8="],
      overloads: (spend) => ofOctets("Base64Namespace.encode", "string", (value) => encoded(value, "base64", spend)),
    },
    {
      usage: "base64.decode(TEXT)",
      summary: "The bytes of a Base64 text. It also accepts the URL-safe alphabet, and texts without padding.",
      example: ["string(base64.decode('aGVsbG8='))", "hello"],
      overloads: (spend) => ({
        "Base64Namespace.decode(string): bytes": (_: unknown, text: string) => {
          spend(text.length >> 6);
          if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text) || withoutEnd(text, "=").length % 4 === 1) {
            throw new Refused("base64.decode() takes Base64");
          }
          return Buffer.from(text, "base64");
        },
      }),
    },
    {
      usage: "base64.urlEncode(VALUE)",
      summary: "Base64 with the alphabet for URLs, without padding.",
      example: ["base64.urlEncode('a>?b')", "YT4_Yg"],
      overloads: (spend) => ofOctets("Base64Namespace.urlEncode", "string", (value) => encoded(value, "base64url", spend)),
    },
    {
      usage: "BYTES.hex()",
      summary: "Bytes in hexadecimal.",
      example: ["bytes('hi').hex()", "6869"],
    },
    {
      usage: "url.encode(TEXT)",
      summary: "Escapes a text for a path segment or a query parameter, as `encodeURIComponent` does in JavaScript.",
      example: ["url.encode('a b&c')", "a%20b%26c"],
      overloads: (spend) => ({
        "UrlNamespace.encode(string): string": (_: unknown, text: string) => {
          chargeForText(text.length, spend);
          return encodeURIComponent(text.toWellFormed());
        },
      }),
    },
    {
      usage: "url.decode(TEXT)",
      summary: "The text that `url.encode` escaped.",
      example: ["url.decode('a%20b%26c')", "a b&c"],
      overloads: (spend) => ({
        "UrlNamespace.decode(string): string": (_: unknown, text: string) => {
          spend(text.length >> 6);
          try {
            return decodeURIComponent(text);
          } catch {
            throw new Refused("url.decode() takes a URL-encoded text");
          }
        },
      }),
    },
    {
      usage: "url.query(OBJECT)",
      summary: "A query string of an object. A list repeats its key. Nested objects become JSON.",
      example: ["url.query({'q': 'a b', 'tag': ['x', 'y']})", "q=a+b&tag=x&tag=y"],
      overloads: (spend) => ({
        "UrlNamespace.query(map): string": (_: unknown, given: object) => {
          chargeForValue(given, spend);
          const query = new URLSearchParams();
          for (const [key, values] of Object.entries(toJson(given) as object)) {
            for (const value of [values].flat()) query.append(key, typeof value === "string" ? value : JSON.stringify(value));
          }
          return query.toString();
        },
      }),
    },
    {
      usage: "json.encode(VALUE)",
      summary: "A value as JSON text.",
      example: ["json.encode({'a': [1, true, null]})", '{"a":[1,true,null]}'],
      overloads: (spend) => ({
        "JsonNamespace.encode(dyn): string": (_: unknown, value: unknown) => {
          chargeForValue(value, spend);
          const text = JSON.stringify(toJson(value));
          chargeForText(text.length, spend);
          return text;
        },
      }),
    },
    {
      usage: "json.decode(TEXT)",
      summary: "The value of a JSON text. Whole numbers beyond ±(2^53 - 1) become texts.",
      example: [`json.decode('{"a": [1]}').a`, [1]],
      overloads: (spend) => ({
        "JsonNamespace.decode(string): dyn": (_: unknown, text: string) => {
          spend(text.length >> 3);
          try {
            return toCelValue(parseJson(text));
          } catch {
            throw new Refused("json.decode() takes JSON");
          }
        },
      }),
    },
  ],
};

const WARNINGS: Readonly<Record<string, string>> = {
  sha1: " Not for security.",
  md5: " Not for security.",
};

const EXAMPLES: Readonly<Record<string, string>> = {
  sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
  sha512: "9b71d224bd62f378",
  sha1: "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d",
  md5: "5d41402abc4b2a76b9719d911017c592",
};

/** Digests. All return bytes: `.hex()` and `base64.encode` make a text of them. */
export const hashFunctions: FunctionGroup = {
  title: "Hashes",
  functions: [
    ...["sha256", "sha512", "sha1", "md5"].map((algorithm) => ({
      usage: `hash.${algorithm}(VALUE)`,
      summary: `${algorithm.toUpperCase().replace("SHA", "SHA-")} of bytes, or of a text in UTF-8, as bytes.${WARNINGS[algorithm] ?? ""}`,
      example: [
        `hash.${algorithm}('hello').hex()${algorithm === "sha512" ? ".substring(0, 16)" : ""}`,
        EXAMPLES[algorithm]!,
      ] as const,
      overloads: (spend: Spend) =>
        ofOctets(`HashNamespace.${algorithm}`, "bytes", (value) => {
          spend(1 + (value.length >> 6));
          return createHash(algorithm).update(value).digest();
        }),
    })),
    {
      usage: "hash.hmacSha256(KEY, VALUE)",
      summary: "HMAC with SHA-256, as bytes: the signature of many webhooks. Key and value are texts or bytes.",
      example: ["hash.hmacSha256('key', 'hello').hex()", "9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b"],
      overloads: (spend) => {
        const sign = (_: unknown, key: Octets, value: Octets) => {
          spend(2 + ((key.length + value.length) >> 6));
          return createHmac("sha256", key).update(value).digest();
        };
        const types = ["string", "bytes"];
        return Object.fromEntries(
          types.flatMap((key) => types.map((value) => [`HashNamespace.hmacSha256(${key}, ${value}): bytes`, sign])),
        );
      },
    },
  ],
};

function ofOctets(name: string, result: string, compute: (value: Octets) => unknown) {
  const call = (_: unknown, value: Octets) => compute(value);
  return { [`${name}(string): ${result}`]: call, [`${name}(bytes): ${result}`]: call };
}

function encoded(value: Octets, encoding: "base64" | "base64url", spend: Spend): string {
  chargeForText(value.length * 2, spend);
  return Buffer.from(value as string).toString(encoding);
}
