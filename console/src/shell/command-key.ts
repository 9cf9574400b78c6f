/** The name of the key that, held with another key, gives a command: pages take both, and name the one of this system's habit. */
export const COMMAND_KEY = /^(?:Mac|iP)/.test(navigator.platform) ? "Cmd" : "Ctrl";
