import type { ConfigFile } from "./config-file.ts";

/** The flags of every command with settings. */
export const settingsFlags = {
  config: {
    type: "string",
    valueHint: "file",
    description: "Configuration file; default: portico.config.{ts,mjs,json,yaml} in this folder",
  },
  "data-dir": { type: "string", valueHint: "dir", description: "Data directory; default: .portico in this folder" },
} as const;

/** The flags of every command that starts a service. */
export const startFlags = {
  ...settingsFlags,
  https: { type: "boolean", description: "Listen with HTTPS; without --https-cert, with a self-signed certificate" },
  "https-cert": { type: "string", valueHint: "file", description: "Certificate with its chain, as PEM; listens with HTTPS" },
  "https-key": { type: "string", valueHint: "file", description: "Private key of --https-cert, as PEM" },
  json: { type: "boolean", description: "Write only one line of JSON to standard output, when all listeners are open" },
} as const;

export interface SettingsFlags {
  readonly config?: string | undefined;
  readonly "data-dir"?: string | undefined;
  readonly https?: boolean | undefined;
  readonly processes?: string | undefined;
  readonly "https-cert"?: string | undefined;
  readonly "https-key"?: string | undefined;
  /** Port of the only listener, as it was written, and the key that it sets. */
  readonly onlyPort?: { readonly key: string; readonly text: string } | undefined;
  /** The configuration file, if it was read already. */
  readonly configFile?: ConfigFile | undefined;
}
