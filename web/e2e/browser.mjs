// The browser of the tests and of the measurements: Debian's Chromium without windows, which needs two thirds of the
// processor time of the whole one, or that where nothing else is installed. The variable CHROMIUM names another.
import { existsSync } from 'node:fs'

const installed = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']

export const browser = process.env.CHROMIUM ?? installed.find((path) => existsSync(path)) ?? installed[0]
