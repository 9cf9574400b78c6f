import { defineConfig } from "nitro";

export default defineConfig({ preset: "node-server", features: { websocket: true }, plugins: ["./close.ts"] });
