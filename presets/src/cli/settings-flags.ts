/** The flags that every command with settings takes. */
export const settingsFlags = {
  config: {
    type: "string",
    valueHint: "file",
    description: "Configuration file; default: portico.config.{ts,mjs,json,yaml} in this folder",
  },
  "data-dir": { type: "string", valueHint: "dir", description: "Data directory; default: .portico in this folder" },
} as const;

/** The flags of whatever starts a service. */
export const startFlags = {
  ...settingsFlags,
  json: { type: "boolean", description: "Write one line of JSON to standard output when everything listens, and nothing else" },
} as const;

export interface SettingsFlags {
  readonly config?: string | undefined;
  readonly "data-dir"?: string | undefined;
}
