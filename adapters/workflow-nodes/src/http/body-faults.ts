import { Buffer } from "node:buffer";
import { isRecord } from "@portico/core/contract";
import type { ports } from "@portico/core";

const BODIES = ["body", "form", "multipart", "bytes", "file"] as const;
const CONTENTS = ["value", "bytes", "file"] as const;
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:;[\x20-\x7e]*)?$/;

/** Problems of the keys that give a body. `isWritten`: templates are checked after evaluation. Messages contain no value. */
export function bodyFaults(input: Readonly<Record<string, unknown>>, isWritten: boolean): ports.NodeFault[] {
  const { method = "GET", headers, multipart, bytes } = input;
  const [first, second] = BODIES.filter((key) => input[key] !== undefined);
  if (first === undefined) return [];
  const faults: ports.NodeFault[] = [];
  if (method === "GET" || method === "HEAD") faults.push({ path: [first], message: `A ${method} request has no body` });
  if (second !== undefined) faults.push({ path: [second], message: `A request has one body: \`${first}\` or \`${second}\`` });
  if (isInvalidBase64(bytes, isWritten)) faults.push({ path: ["bytes"], message: "Invalid base64" });
  if (multipart === undefined) return faults;
  for (const name of isRecord(headers) ? Object.keys(headers) : [])
    if (name.toLowerCase() === "content-type") faults.push({ path: ["headers", name], message: "`multipart` sets this header" });
  const parts: readonly unknown[] = Array.isArray(multipart) ? multipart : [];
  return [...faults, ...parts.flatMap((part, index) => (isRecord(part) ? partFaults(part, index, isWritten) : []))];
}

function partFaults(part: Readonly<Record<string, unknown>>, index: number, isWritten: boolean): ports.NodeFault[] {
  const { bytes, type } = part;
  const faults: ports.NodeFault[] = [];
  if (CONTENTS.filter((key) => part[key] !== undefined).length !== 1)
    faults.push({ path: ["multipart", index], message: "A part has one of `value`, `bytes` and `file`" });
  if (isInvalidBase64(bytes, isWritten)) faults.push({ path: ["multipart", index, "bytes"], message: "Invalid base64" });
  if (typeof type === "string" && !(isWritten && isTemplate(type)) && !MEDIA_TYPE.test(type))
    faults.push({ path: ["multipart", index, "type"], message: "Invalid media type" });
  return faults;
}

/** `Buffer` skips invalid characters. */
function isInvalidBase64(value: unknown, isWritten: boolean): boolean {
  return (
    typeof value === "string" && !(isWritten && isTemplate(value)) && Buffer.from(value, "base64").toString("base64") !== value
  );
}

function isTemplate(text: string): boolean {
  return text.includes("${{");
}
