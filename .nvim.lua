-- Neovim's settings for this tree (:set exrc): clangd, ruff, and debuggers for Python and C++.
-- Needs nvim-dap, debugpy in .venv, and gdb 14 or newer (its debug adapter).
local root = vim.fn.getcwd()

vim.lsp.config("clangd", { cmd = { "clangd", "--compile-commands-dir=build/debug" } })
vim.lsp.config("ruff", { cmd = { root .. "/.venv/bin/ruff", "server" } })
vim.lsp.enable({ "clangd", "ruff" })
vim.o.colorcolumn = "101"

local found, dap = pcall(require, "dap")
if not found then
  return
end

dap.adapters.python = {
  type = "executable",
  command = root .. "/.venv/bin/python",
  args = { "-m", "debugpy.adapter" },
}
dap.adapters.gdb = {
  type = "executable",
  command = "gdb",
  args = { "--interpreter=dap", "-x", root .. "/tools/gdb/facula_printers.py" },
}
-- Start the first; it prints its process and waits until the second is attached.
dap.configurations.python = {
  {
    type = "python",
    request = "launch",
    name = "Python, waiting for the C++ debugger",
    program = root .. "/tools/wait_for_debugger.py",
    args = { "${file}" },
    env = { PYTHONPATH = root .. "/build/debug/python" },
    justMyCode = false,
  },
}
dap.configurations.cpp = {
  {
    type = "gdb",
    request = "attach",
    name = "C++ of the waiting Python",
    program = root .. "/.venv/bin/python",
    pid = require("dap.utils").pick_process,
  },
}
