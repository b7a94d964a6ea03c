"""`continuity ui`: a page in the browser that examines a server, runs the suite on it, and shows each verdict when it is decided.

The page is served on loopback to whoever has the token. Everything that it starts is the command `continuity` itself, as a child process:

    form          what the page sends: a target, a key, a profile, what to run
    commands      the command line and the environment of a child; the key is only in the environment
    child         a child process, its output line by line, and its end
    play          the one run at a time, and its events for all pages that watch
    history       the folders of earlier runs, in the user's cache
    show          what the page shows of a run: markup that is made here and escaped
    access        who may ask: token, Host, Origin, and the headers of every answer
    routes        the addresses of the page
    serve         the server, from its start to Ctrl-C
"""
