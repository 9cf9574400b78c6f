import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { type ports, Secret } from "@portico/core";

const SECRET_BYTES = 32;

/** The part of the secrets port without storage: the same for every adapter. */
export const secretBytes: Pick<ports.Secrets, "create" | "digest" | "matches"> = {
  create: (prefix) => new Secret(prefix + randomBytes(SECRET_BYTES).toString("base64url")),
  digest: (value) => hash("sha256", value, "hex"),
  matches(presented, digest) {
    const found = Buffer.from(hash("sha256", presented, "hex"));
    const kept = Buffer.from(digest);
    // The length of a digest is not secret. A stored digest of another length is damaged and matches no secret.
    return kept.length === found.length && timingSafeEqual(kept, found);
  },
};
