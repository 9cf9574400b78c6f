import { Buffer } from "node:buffer";
import type { ports } from "@portico/core";

const BODIES = ["body", "form", "multipart", "bytes"] as const;
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:;[\x20-\x7e]*)?$/;

/** Problems of the keys that give a body. Templates are checked after evaluation. Messages contain no value. */
export function bodyFaults(input: Readonly<Record<string, unknown>>): ports.NodeFault[] {
  const { method = "GET", headers, multipart, bytes } = input;
  const [first, second] = BODIES.filter((key) => input[key] !== undefined);
  if (first === undefined) return [];
  const faults: ports.NodeFault[] = [];
  if (method === "GET" || method === "HEAD") faults.push({ path: [first], message: `A ${method} request has no body` });
  if (second !== undefined) faults.push({ path: [second], message: `A request has one body: \`${first}\` or \`${second}\`` });
  if (isInvalidBase64(bytes)) faults.push({ path: ["bytes"], message: "Invalid base64" });
  if (multipart === undefined) return faults;
  for (const name of isObject(headers) ? Object.keys(headers) : [])
    if (name.toLowerCase() === "content-type") faults.push({ path: ["headers", name], message: "`multipart` sets this header" });
  const parts: readonly unknown[] = Array.isArray(multipart) ? multipart : [];
  return [...faults, ...parts.flatMap((part, index) => (isObject(part) ? partFaults(part, index) : []))];
}

function partFaults(part: Readonly<Record<string, unknown>>, index: number): ports.NodeFault[] {
  const { value, bytes, type } = part;
  const faults: ports.NodeFault[] = [];
  if ((value === undefined) === (bytes === undefined))
    faults.push({ path: ["multipart", index], message: "A part has either `value` or `bytes`" });
  if (isInvalidBase64(bytes)) faults.push({ path: ["multipart", index, "bytes"], message: "Invalid base64" });
  if (typeof type === "string" && !isTemplate(type) && !MEDIA_TYPE.test(type))
    faults.push({ path: ["multipart", index, "type"], message: "Invalid media type" });
  return faults;
}

/** `Buffer` skips invalid characters. */
function isInvalidBase64(value: unknown): boolean {
  return typeof value === "string" && !isTemplate(value) && Buffer.from(value, "base64").toString("base64") !== value;
}

function isTemplate(text: string): boolean {
  return text.includes("${{");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
