import { openDesk } from "../desk.ts";

export const { app } = await openDesk();
