import { hash } from "node:crypto";
import { canonicalContent } from "../canonical-content.ts";

/** Digest of a query's body (open points 7): `qrd1:` and the lowercase hex SHA-256 of its canonical content. Throws as that does. */
export function requestDigest(body: Readonly<Record<string, unknown>>): string {
  return `qrd1:${hash("sha256", canonicalContent(body))}`;
}
