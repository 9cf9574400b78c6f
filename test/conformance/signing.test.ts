import { hmacSigning } from "@portico/adapters/signing/hmac";
import { Secret } from "@portico/core";
import { signingConformance } from "./signing.ts";

signingConformance("hmac", (key) => ({ adapter: hmacSigning({ key: key === undefined ? undefined : new Secret(key) }) }));
