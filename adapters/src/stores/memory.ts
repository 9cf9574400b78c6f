import type { Adapter } from "@portico/core";
import { memoryBlobs } from "../blobs/memory.ts";
import { memoryEngine } from "../engine/memory.ts";
import { memoryLog } from "../log/memory.ts";
import { memoryRecords } from "../records/memory.ts";
import { aesGcmSealing } from "../sealing/aes-gcm.ts";
import { memorySecrets } from "../secrets/memory.ts";
import { keptKey } from "../signing/kept-key.ts";
import { hmacSigning } from "../signing/hmac.ts";

/**
 * All stores of the areas in memory: the ports `records`, `log`, `engine`, `blobs`, `secrets`, `signing` and `sealing`. For tests
 * and for trying things out: the data is lost when the app closes.
 */
export function memoryStore(): readonly Adapter[] {
  return [
    memoryRecords(),
    memoryLog(),
    memoryEngine({}),
    memoryBlobs(),
    memorySecrets(),
    hmacSigning({ key: keptKey }),
    aesGcmSealing({}),
  ];
}
