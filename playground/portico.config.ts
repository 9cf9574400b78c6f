import type { LocalConfig } from "@portico/presets/local";

export default {
  providers: [{ id: "main", protocol: "messages", baseUrl: "https://api.example/v1", credential: { env: "MAIN_KEY" } }],
} satisfies LocalConfig;
