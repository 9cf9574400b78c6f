import { definePlugin } from "nitro";
import { app } from "./desk.ts";

export default definePlugin(({ hooks }) => void hooks.hook("close", app.close));
