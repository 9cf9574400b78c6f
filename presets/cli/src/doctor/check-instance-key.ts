import { existsSync } from "node:fs";
import { usedKeyId } from "@portico/adapters/sealing/aes-gcm";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { createApp, ports } from "@portico/core";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../data-directory.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "instance key";

/** Checks that the key of the settings opens what the instance has sealed. Otherwise a start fails. */
export async function checkInstanceKey(
  { instance: { key, otherKeys } }: PlatformSettings,
  directory: DataDirectory,
): Promise<readonly Finding[]> {
  if (!existsSync(directory.credentials)) return [];
  const app = await createApp({ name: "doctor", adapters: [fileSecrets({ path: directory.credentials })] });
  try {
    const used = await usedKeyId(app.port(ports.secrets), { key, otherKeys });
    return used === undefined ? [] : [fine(ABOUT, "it opens the stored values")];
  } catch (error) {
    if (error instanceof ports.SealingUnavailable)
      return [wrong(ABOUT, error.message, "set instance.key (PORTICO_INSTANCE_KEY) to the key of the earlier starts")];
    if (error instanceof ports.SecretsUnavailable)
      return [wrong("secrets", error.message, `correct ${directory.credentials}, or restore it from a backup`)];
    throw error;
  } finally {
    await app.close();
  }
}
